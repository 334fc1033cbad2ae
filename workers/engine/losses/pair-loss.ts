/**
 * Losses of pairs, whose samples lie side by side in a batch and in a micro-batch: the chosen response at an even
 * place, the rejected one after it. Each is divided by the pairs of the optimiser step, metrics too, so they add up
 * over micro-batches. Metrics have TRL's names.
 */
import { at } from '../../../core/at.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import { preferenceLoss } from '../../../core/rl/preference-loss.ts';
import type { PreferenceLoss } from '../../../core/rl/preference-loss.ts';
import { rewardModelLoss } from '../../../core/rl/reward-model-loss.ts';
import { rowSums } from '../../../core/rl/row-sums.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { Coefficients } from './loss-terms.ts';
import { gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

/** Rewards of both responses of some pairs, and what the loss says of them. */
interface RewardedPairs extends PreferenceLoss {
  readonly chosen_G: Float64Array;
  readonly rejected_G: Float64Array;
}

/** DPO: log-probs against those of the reference in the batch. `stepSamples`: of the optimiser step, two to a pair. */
export function dpoCoefficients(
  settings: LossSettings,
  batch: BatchTensors,
  micro: MicroBatch,
  logProbs_T: Float32Array,
  stepSamples: number,
): Coefficients {
  if (batch.refLogProbs_T === undefined) throw new RangeError('a batch of kind dpo has log-probs of its reference');
  const { constants } = settings;
  const [beta, labelSmoothing] = [Number(constants?.['beta'] ?? 0.1), Number(constants?.['labelSmoothing'] ?? 0)];
  const rows = { offsets_S1: micro.rowOffsets_S1, mask_T: gather(batch.mask_T, micro.tokens_P) };
  const policy = byPair(rowSums(logProbs_T, rows));
  const reference = byPair(rowSums(gather(batch.refLogProbs_T, micro.tokens_P), rows));
  const pairWeight = 2 / stepSamples;
  const found = preferenceLoss(
    { ...policy, reference },
    { beta, labelSmoothing, lossType: settings.lossMode, pairWeight },
  );
  const implied = (of: Float64Array, ofReference: Float64Array) =>
    of.map((sum, g) => beta * (sum - at(ofReference, g)));
  const rewards = {
    chosen_G: implied(policy.chosen_G, reference.chosen_G),
    rejected_G: implied(policy.rejected_G, reference.rejected_G),
  };
  return {
    loss: found.loss,
    gradients: { logProbs: perToken(found.dChosen_G, micro.rowOffsets_S1, rows.mask_T) },
    metrics: {
      ...pairMetrics({ ...found, ...rewards }, pairWeight),
      'logps/chosen': pairWeight * sum(policy.chosen_G),
      'logps/rejected': pairWeight * sum(policy.rejected_G),
    },
  };
}

/** A reward model (Bradley and Terry), from the scores of both responses of each pair. */
export function rewardModelCoefficients(scores_S: Float32Array, stepSamples: number): Coefficients {
  const pairs = byPair(Float64Array.from(scores_S));
  const pairWeight = 2 / stepSamples;
  const found = rewardModelLoss(pairs.chosen_G, pairs.rejected_G, pairWeight);
  const scores = Float32Array.from(scores_S, (_, s) => (s % 2 === 0 ? 1 : -1) * at(found.dChosen_G, Math.floor(s / 2)));
  return { loss: found.loss, gradients: { scores }, metrics: pairMetrics({ ...found, ...pairs }, pairWeight) };
}

function pairMetrics(pairs: RewardedPairs, pairWeight: number): Record<string, number> {
  const { chosen_G, rejected_G, accuracy, margin } = pairs;
  const share = pairWeight * chosen_G.length;
  return {
    'rewards/chosen': pairWeight * sum(chosen_G),
    'rewards/rejected': pairWeight * sum(rejected_G),
    'rewards/accuracies': share * accuracy,
    'rewards/margins': share * margin,
  };
}

/** Values of samples, as those of the chosen and of the rejected responses. */
function byPair(values_S: Float64Array): { readonly chosen_G: Float64Array; readonly rejected_G: Float64Array } {
  const pairs = values_S.length / 2;
  return {
    chosen_G: Float64Array.from({ length: pairs }, (_, g) => at(values_S, 2 * g)),
    rejected_G: Float64Array.from({ length: pairs }, (_, g) => at(values_S, 2 * g + 1)),
  };
}

/** The derivative by the sum of a response, on each of its tokens. */
function perToken(dChosen_G: Float64Array, offsets_S1: Int32Array, mask_T: Float32Array): Float32Array {
  const derivative_T = new Float32Array(mask_T.length);
  for (let s = 0; s + 1 < offsets_S1.length; s++) {
    const slope = (s % 2 === 0 ? 1 : -1) * at(dChosen_G, Math.floor(s / 2));
    for (let t = at(offsets_S1, s); t < at(offsets_S1, s + 1); t++) derivative_T[t] = slope * at(mask_T, t);
  }
  return derivative_T;
}

const sum = (values: Float64Array): number => values.reduce((all, value) => all + value, 0);
