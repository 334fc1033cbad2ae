/**
 * The rollout correction of a batch, once and with its old log-probs: importance weights for its losses, and a mask
 * without the tokens that are rejected. (The policy loss `bypass_mode` corrects in every micro-batch instead.)
 */
import { correctRollout } from '../../../core/rl/rollout-correction/index.ts';
import { parseRolloutCorrection } from '../../../core/rl/rollout-correction/options.ts';
import type { AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { Layout } from './batch-outputs.ts';
import { rowsOf } from '../samples/rows.ts';

export interface CorrectedLayout {
  readonly layout: Layout;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Weights and mask both follow from the mask before. A batch without a valid token stays as it is. */
export function correctedRollout(
  { rolloutCorrection: settings }: Pick<AlgorithmSettings, 'rolloutCorrection'>,
  layout: Layout,
): CorrectedLayout {
  const { oldLogProbs_T, rolloutLogProbs_T } = layout;
  if (settings === undefined || oldLogProbs_T === undefined || rolloutLogProbs_T === undefined)
    return { layout, metrics: {} };
  if (!layout.mask_T.includes(1)) return { layout, metrics: {} };
  const correction = parseRolloutCorrection(settings);
  const { rolloutIsWeights_T, mask_T, metrics } = correctRollout(
    rowsOf(layout),
    oldLogProbs_T,
    rolloutLogProbs_T,
    correction,
  );
  const weights = rolloutIsWeights_T && { rolloutIsWeights_T: Float32Array.from(rolloutIsWeights_T) };
  return { layout: { ...layout, mask_T: Uint8Array.from(mask_T), ...weights }, metrics };
}
