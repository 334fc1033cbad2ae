/**
 * Training directly against the policy that sampled, without recomputing old log-probs (verl: `bypass_mode`).
 * Importance weights and rejection (rollout-correction/) compare the CURRENT policy with the rollout's log-probs, in
 * every micro-batch:
 *
 *   ppo_clip    `vanilla` with old := rollout; its ratio already is the importance weight, so weights are only reported
 *   reinforce   −A·log π·sg(w), or −A·log π without weights
 *
 * Rejected tokens leave the mask. Importance weights that come with the input are ignored.
 */
import { scratchFloat64 } from '../scratch.ts';
import { InvalidInputError } from '../../errors.ts';
import { correctRollout } from '../rollout-correction/index.ts';
import { columnsOf, needed, tokenMean, type LossColumns } from './columns.ts';
import { gpg } from './gpg.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';
import { vanilla } from './vanilla.ts';

/** Weights normalised over the batch and rejected sequences need all tokens at hand. */
export const bypassMode: PolicyLoss = { scope: 'mini-batch', needs: LOSS_NEEDS.bypass_mode, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const correction = config.rolloutCorrection;
  if (correction === undefined) {
    throw new InvalidInputError('bypass_mode needs the settings of the rollout correction', {
      hint: 'set algorithm.rollout_correction',
    });
  }
  const rollout_T = scratchFloat64(needed(input.rolloutLogProb_T, 'bypass_mode', 'rolloutLogProbs'));
  const columns = columnsOf({ ...input, oldLogProb_T: rollout_T });
  const corrected = correctRollout(columns.rows, columns.detachedLogProb_T, rollout_T, correction);
  const kept: PolicyLossInput = {
    rows: { offsets_S1: input.rows.offsets_S1, mask_T: corrected.mask_T },
    logProb_T: columns.logProb_T,
    oldLogProb_T: rollout_T,
    advantages_T: columns.advantages_T,
    rolloutIsWeights_T: correction.lossType === 'reinforce' ? corrected.rolloutIsWeights_T : undefined,
  };
  if (correction.lossType === 'ppo_clip') {
    const result = vanilla.compute(kept, config);
    return { ...result, metrics: { ...result.metrics, ...corrected.metrics } };
  }
  const kl = { 'actor/ppo_kl': negativeLogRatio(columnsOf(kept)) };
  return { ...gpg.compute(kept, config), metrics: { ...kl, ...corrected.metrics } };
}

/** Mean of log π_rollout − log π over the tokens that are kept; not clamped. */
function negativeLogRatio({ tokens, mask_T, valid, logProb_T, oldLogProb_T }: LossColumns): number {
  let sum = 0;
  for (let t = 0; t < tokens; t++) {
    const mask = mask_T[t] as number;
    if (mask !== 0) sum += -((logProb_T[t] as number) - (oldLogProb_T[t] as number)) * mask;
  }
  return tokenMean(sum, valid);
}
