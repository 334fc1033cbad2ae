/**
 * REINFORCE++ with a group baseline (verl: `reinforce_plus_plus_baseline`; Hu 2025, arXiv 2501.03262): the score of a
 * sample minus the mean of its group, whitened over all valid tokens of the batch, so a long response counts more in
 * mean and variance.
 *
 *   A = whiten(s − mean_g)·m,   R = A
 *
 * A group of one keeps its score before whitening. A batch needs two valid tokens.
 */
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { broadcastRows, clearMasked } from '../ragged.ts';
import { centredScores } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageEstimator, Advantages } from './types.ts';

export const reinforcePlusPlusBaseline: AdvantageEstimator = {
  name: 'reinforce_plus_plus_baseline',
  needs: ADVANTAGE_NEEDS.reinforce_plus_plus_baseline,
  compute,
};

function compute(batch: AdvantageBatch): Advantages {
  const { rows } = batch;
  requireSamples('groups', batch.groups_S, batch);
  const centred_S = centredScores(outcomeScores(batch.rewards_T, rows), batch.groups_S);
  const advantages_T = clearMasked(maskedWhiten(broadcastRows(centred_S, rows), rows.mask_T), rows);
  return { advantages_T, returns_T: advantages_T };
}
