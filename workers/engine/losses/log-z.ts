/**
 * The component `logZ` of the loss `flowrl` (core/rl/policy-loss/flowrl.ts): a value model whose value at the last
 * token of a prompt estimates log Z of that prompt. It begins as the model that is trained, with a head of zeros, and
 * has an optimiser with the settings of the policy's.
 *
 * verl-recipe has a head on the policy's own hidden states, and one backward pass for both. Here the policy and log Z
 * are two components, trained one after the other on the batch: the policy sees log Z as it was before the update, and
 * log Z sees the log-probs of the policy before the update. Both read only the batch, so a replay gives the same bits.
 */
import { at } from '../../../core/at.ts';
import type { LossAggMode } from '../../../core/rl/names.ts';
import { flowrl } from '../../../core/rl/policy-loss/flowrl.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { Coefficients, StepTotals } from './loss-terms.ts';
import { gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

/** A row's first response token is predicted at the last token of its prompt. 0 for a row without any. */
export function logZOfRows(values: Float32Array, offsets_S1: Int32Array): Float32Array {
  return Float32Array.from({ length: offsets_S1.length - 1 }, (_, s) => {
    const [start, end] = [at(offsets_S1, s), at(offsets_S1, s + 1)];
    return end > start ? at(values, start) : 0;
  });
}

/** Coefficients of a value model's forward pass on a micro-batch: the loss of `flowrl` as a function of log Z. */
export function logZCoefficients(
  settings: LossSettings,
  batch: BatchTensors,
  { rowOffsets_S1, tokens_P }: MicroBatch,
  values_P: Float32Array,
  totals: StepTotals,
): Coefficients {
  const { oldLogProbs_T, refLogProbs_T } = batch;
  if (oldLogProbs_T === undefined || refLogProbs_T === undefined) throw new Error('the batch was not made for flowrl');
  const oldLogProb_T = gather(oldLogProbs_T, tokens_P);
  const { loss, dLogZ_S = [] } = flowrl.compute(
    {
      rows: { offsets_S1: rowOffsets_S1, mask_T: gather(batch.mask_T, tokens_P) },
      logProb_T: oldLogProb_T,
      oldLogProb_T,
      refLogProb_T: gather(refLogProbs_T, tokens_P),
      advantages_T: gather(batch.advantages_T, tokens_P),
      logZ_S: logZOfRows(values_P, rowOffsets_S1),
    },
    {
      lossAggMode: settings.lossAggMode as LossAggMode,
      totals,
      clipRatio: settings.clipRatioLow,
      clipRatioC: settings.clipRatioC,
      ...settings.constants,
    },
  );
  const values = new Float32Array(values_P.length);
  for (const [s, slope] of Array.from(dLogZ_S).entries()) {
    const start = at(rowOffsets_S1, s);
    if (at(rowOffsets_S1, s + 1) > start) values[start] = slope;
  }
  return { loss, gradients: { values }, metrics: {} };
}
