/**
 * Correction of the difference between the policy that samples and the one that trains (verl:
 * `compute_rollout_correction_and_rejection_mask`, section `algorithm.rollout_correction`). In decoupled mode it is
 * applied once per batch, to old log-probs; the policy loss `bypass_mode` applies it to the current ones.
 */
import { scratch, scratchFloat64 } from '../scratch.ts';
import { requireTokens, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { driftMetrics } from './drift.ts';
import type { RolloutCorrection } from './options.ts';
import { rejectTokens } from './rejection.ts';
import { correctionColumns } from './statistics.ts';
import { importanceWeights } from './weights.ts';

export interface CorrectedRollout {
  /** Absent when importance weights are off. */
  readonly rolloutIsWeights_T?: Float64Array;
  /** The mask of the rows, 0 on rejected tokens. */
  readonly mask_T: Numbers;
  /** verl's names, with its prefix `rollout_corr/`. Drift is measured even when nothing is corrected. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * `logProb_T` is under the trainer's policy, `rolloutLogProb_T` as recorded while sampling. Weights and rejection both
 * read the original mask.
 * @throws InvalidInputError when no token is valid, or lengths differ
 */
export function correctRollout(
  rows: RaggedRows,
  logProb_T: Numbers,
  rolloutLogProb_T: Numbers,
  correction: RolloutCorrection,
): CorrectedRollout {
  requireTokens('log-probs', logProb_T, tokenCount(rows));
  requireTokens('rollout log-probs', rolloutLogProb_T, tokenCount(rows));
  const [train_T, rollout_T] = [scratchFloat64(logProb_T), scratchFloat64(rolloutLogProb_T)];
  const columns = correctionColumns(rows, difference(train_T, rollout_T));
  const weighted = correction.weights === undefined ? undefined : importanceWeights(columns, correction.weights);
  const rejected = correction.rejection.length === 0 ? undefined : rejectTokens(columns, correction.rejection);
  const metrics = { ...weighted?.metrics, ...rejected?.metrics, ...driftMetrics(columns, train_T, rollout_T) };
  return {
    ...(weighted === undefined ? {} : { rolloutIsWeights_T: weighted.weights_T }),
    mask_T: rejected?.mask_T ?? columns.mask_T,
    metrics: Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`rollout_corr/${name}`, value])),
  };
}

function difference(a_T: Float64Array, b_T: Float64Array): Float64Array {
  const difference_T = scratch(a_T.length);
  for (let t = 0; t < difference_T.length; t++) difference_T[t] = (a_T[t] as number) - (b_T[t] as number);
  return difference_T;
}
