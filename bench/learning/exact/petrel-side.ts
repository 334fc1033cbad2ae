/** Loss and gradient of a recorded batch by petrel's engine, as an update computes them. */
import { forwardOne } from '../../../core/ports/one-lane.ts';
import { ownLossCall, ownLossResult } from '../../../core/rl/own/loss.ts';
import type { PolicyLossResult } from '../../../core/rl/policy-loss/index.ts';
import { indexOf } from '../../../models/batch-shards.ts';
import {
  actorConfig,
  lossCoefficients,
  ownLossInput,
  stepTotals,
  valueCoefficients,
} from '../../../workers/engine/losses/loss.ts';
import type { LossInputs, StepTotals } from '../../../workers/engine/losses/loss-terms.ts';
import { cutMicroBatch } from '../../../workers/engine/losses/micro-batch.ts';
import type { MicroBatch } from '../../../workers/engine/losses/micro-batch.ts';
import { loss as sequenceRatio } from '../sequence-ratio.ts';
import { settingsFor } from './comparisons.ts';
import type { Comparison } from './comparisons.ts';
import type { Recorded } from './recorded.ts';

export interface LossAndGradient {
  readonly loss: number;
  /** Gradients by parameter, under its Hugging Face name. */
  readonly gradients: ReadonlyMap<string, Float32Array>;
}

/** Undefined where the batch has no such loss: without a critic there is no loss of values. */
export async function petrelSide(recorded: Recorded, comparison: Comparison): Promise<LossAndGradient | undefined> {
  const model = comparison === 'value' ? recorded.critic : recorded.actor;
  if (model === undefined) return undefined;
  const { batch, record, micros } = recorded;
  const settings = settingsFor(comparison, model.loss);
  const totals = stepTotals(
    indexOf(batch),
    micros.flatMap((samples) => [...samples]),
    settings,
  );
  const options = { temperature: settings.temperature, keep: true };
  const { policy } = model;
  await policy.zeroGrads();
  let loss = 0;
  for (const samples of micros) {
    const micro = cutMicroBatch(batch, samples, record.layout);
    if (comparison === 'value') {
      const { handle, outputs } = await forwardOne(policy, micro.packed, { ...options, wants: ['values'] });
      const coefficients = valueCoefficients(settings, batch, micro, outputs.values, totals);
      loss += coefficients.loss;
      await policy.backward([{ handle, gradients: coefficients.gradients }]);
      continue;
    }
    const { handle, outputs } = await forwardOne(policy, micro.packed, { ...options, wants: ['logProbs', 'entropy'] });
    const own = comparison === 'rloo' ? sequenceRatioOf(recorded, micro, outputs, totals) : undefined;
    const coefficients = lossCoefficients(settings, batch, micro, outputs, totals, [0], own);
    loss += coefficients.loss;
    await policy.backward([{ handle, gradients: coefficients.gradients }]);
  }
  return { loss, gradients: gradientsOf(recorded, comparison) };
}

function sequenceRatioOf(
  { batch, actor }: Recorded,
  micro: MicroBatch,
  outputs: LossInputs,
  totals: StepTotals,
): PolicyLossResult {
  const config = actorConfig(settingsFor('rloo', actor.loss), totals, [0]);
  return ownLossResult(sequenceRatio, ownLossCall(sequenceRatio.needs, ownLossInput(batch, micro, outputs), config));
}

function gradientsOf({ actor, critic }: Recorded, comparison: Comparison): Map<string, Float32Array> {
  const { trainer } = (comparison === 'value' && critic ? critic : actor).policy;
  return new Map(
    trainer.parameters.map(({ name, offset, size }) => [name, trainer.read('grads', offset, new Float32Array(size))]),
  );
}
