/** Converts a batch record's loss settings to the coefficients of the engine's backward pass. */
import { at } from '../../../core/at.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import { type ActorLossConfig, type ActorLossInput, actorTotal } from '../../../core/rl/actor-total.ts';
import type { LossAggMode } from '../../../core/rl/names.ts';
import type { OwnLossSources } from '../../../core/rl/own/loss.ts';
import type { PolicyLossResult } from '../../../core/rl/policy-loss/index.ts';
import { parseRolloutCorrection } from '../../../core/rl/rollout-correction/options.ts';
import { sftLoss } from '../../../core/rl/sft-loss.ts';
import { valueLoss } from '../../../core/rl/value-loss.ts';
import type { BatchIndex } from '../../../models/batch-shards.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { distilled } from './distil.ts';
import type { Coefficients, LossInputs, StepTotals } from './loss-terms.ts';
import { gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

/** Totals of an optimiser step's mini-batch, by which all its micro-batches divide. */
export function stepTotals(
  { valid_S, rewards_S }: Pick<BatchIndex, 'valid_S' | 'rewards_S'>,
  samples: ArrayLike<number>,
  settings: LossSettings,
): StepTotals {
  let [batchNumTokens, positiveTokens] = [0, 0];
  for (let i = 0; i < samples.length; i++) {
    const b = at(samples, i);
    const valid = at(valid_S, b);
    batchNumTokens += valid;
    if (at(rewards_S, b) > 0) positiveTokens += valid;
  }
  const { lossScaleFactor } = settings;
  return { dpSize: 1, batchNumTokens, globalBatchSize: samples.length, lossScaleFactor, positiveTokens };
}

/** Coefficients of a value head, against the batch's returns. */
export function valueCoefficients(
  settings: LossSettings,
  batch: BatchTensors,
  micro: MicroBatch,
  values_P: Float32Array,
  totals: StepTotals,
): Coefficients {
  const { loss, dValue_T, metrics } = valueLoss(
    {
      rows: { offsets_S1: micro.rowOffsets_S1, mask_T: gather(batch.mask_T, micro.tokens_P) },
      values_T: values_P,
      returns_T: gather(batch.returns_T, micro.tokens_P),
      ...(batch.values_T && { oldValues_T: gather(batch.values_T, micro.tokens_P) }),
    },
    { lossAggMode: 'token-mean', totals, ...settings.constants },
  );
  return { loss, gradients: { values: Float32Array.from(dValue_T) }, metrics };
}

/** `own`: the result of a policy loss of the user's own. @throws InvalidInputError for an unknown loss mode. */
export function lossCoefficients(
  settings: LossSettings,
  batch: BatchTensors,
  micro: MicroBatch,
  outputs: LossInputs,
  totals: StepTotals,
  seed: readonly number[],
  own?: PolicyLossResult,
): Coefficients {
  if (settings.kind === 'sft') {
    const mask_P = gather(batch.mask_T, micro.tokens_P);
    const { loss, dLogProb_N } = sftLoss(outputs.logProbs, mask_P, totals.batchNumTokens);
    return { loss, gradients: { logProbs: Float32Array.from(dLogProb_N) }, metrics: {} };
  }
  const task = (read: LossInputs) =>
    actorTotal(actorInput(batch, micro, read), actorConfig(settings, totals, seed), own);
  const { distillation } = settings;
  if (distillation !== undefined) return distilled({ ...settings, distillation }, batch, micro, outputs, totals, task);
  const result = task(outputs);
  return {
    loss: result.loss,
    gradients: {
      logProbs: Float32Array.from(result.dLogProb_T),
      ...(result.dEntropy_T && { entropy: Float32Array.from(result.dEntropy_T) }),
    },
    metrics: result.metrics,
  };
}

const scoresAt = (values_S: Float32Array, samples: Int32Array): Float32Array =>
  Float32Array.from(samples, (b) => at(values_S, b));

const groupsAt = (groups_S: Int32Array, samples: Int32Array): Int32Array =>
  Int32Array.from(samples, (b) => at(groups_S, b));

/** What the actor's loss reads of a micro-batch. */
function actorInput(batch: BatchTensors, micro: MicroBatch, outputs: LossInputs): ActorLossInput {
  return {
    rows: { offsets_S1: micro.rowOffsets_S1, mask_T: gather(batch.mask_T, micro.tokens_P) },
    logProb_T: outputs.logProbs,
    oldLogProb_T: batch.oldLogProbs_T === undefined ? outputs.logProbs : gather(batch.oldLogProbs_T, micro.tokens_P),
    advantages_T: gather(batch.advantages_T, micro.tokens_P),
    ...(batch.refLogProbs_T && { refLogProb_T: gather(batch.refLogProbs_T, micro.tokens_P) }),
    ...(batch.rolloutIsWeights_T && { rolloutIsWeights_T: gather(batch.rolloutIsWeights_T, micro.tokens_P) }),
    ...(batch.rolloutLogProbs_T && { rolloutLogProb_T: gather(batch.rolloutLogProbs_T, micro.tokens_P) }),
    scores_S: scoresAt(batch.rewards_S, micro.samples),
    ...(batch.logZ_S && { logZ_S: scoresAt(batch.logZ_S, micro.samples) }),
    ...(batch.groups_S && { groups_S: groupsAt(batch.groups_S, micro.samples) }),
    ...(outputs.entropy && { entropy_T: outputs.entropy }),
  };
}

/** What a loss of the user's own may read besides. */
export function ownLossInput(batch: BatchTensors, micro: MicroBatch, outputs: LossInputs): OwnLossSources {
  return {
    ...actorInput(batch, micro, outputs),
    ...(batch.rolloutLogProbs_T && { rolloutLogProb_T: gather(batch.rolloutLogProbs_T, micro.tokens_P) }),
    ...(batch.values_T && { values_T: gather(batch.values_T, micro.tokens_P) }),
  };
}

/** `seed`: names the micro-batch, for a loss that draws tokens. */
export function actorConfig(settings: LossSettings, totals: StepTotals, seed: readonly number[]): ActorLossConfig {
  return {
    lossMode: settings.lossMode,
    lossAggMode: settings.lossAggMode as LossAggMode,
    totals,
    clipRatio: settings.clipRatioLow,
    clipRatioLow: settings.clipRatioLow,
    clipRatioHigh: settings.clipRatioHigh,
    clipRatioC: settings.clipRatioC,
    ...settings.constants,
    ...(settings.rolloutCorrection && { rolloutCorrection: parseRolloutCorrection(settings.rolloutCorrection) }),
    seed,
    entropyCoeff: settings.entropyCoeff,
    ...(settings.useKlLoss && { klLossCoef: settings.klLossCoef, klLossType: settings.klLossType }),
    ...(settings.positiveNllCoef !== undefined && {
      positiveNllCoef: settings.positiveNllCoef,
      positiveTokens: totals.positiveTokens,
    }),
  };
}
