/** Applying a batch: a function (state, committed batch) → state. Live and replay run exactly this. */
import { actorOf } from '../../core/records/components.ts';
import { at } from '../../core/at.ts';
import type { Call, PolicyEngine } from '../../core/ports/policy.ts';
import type { BatchRecord, OptimizerStep } from '../../core/records/schema.ts';
import { reduceActorMetrics } from '../../core/rl/actor-total.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import type { UpdateOutput } from '../../core/wire/jobs.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { numberToJson } from './json-numbers.ts';
import { lossCoefficients, stepTotals } from './loss.ts';
import { cutMicroBatch } from './micro-batch.ts';
import type { PolicyState } from './state.ts';

export interface UpdateCall {
  /** Called after every micro-batch and every few blocks of the digest: committed work. */
  readonly tick: (done: number, total: number) => void;
  /** Aborted when the result is no longer needed. */
  readonly signal?: AbortSignal;
}

/** Leaves the state dirty when it is aborted. */
export async function applyBatch(
  state: PolicyState,
  record: BatchRecord,
  batch: BatchTensors,
  { tick, signal }: UpdateCall,
): Promise<UpdateOutput> {
  const total = batch.microOffsets_M1.length - 1;
  let done = 0;
  const call: Call = { tick: () => tick(done, total), ...(signal && { signal }) };
  state.markDirty();
  faultPoint('write.dirty', { iteration: record.iteration });
  const steps: OptimizerStep[] = [];
  const perStep: Record<string, number>[] = [];
  const actor = actorOf(record.components);
  for (const [s, lr] of actor.learningRates.entries()) {
    const metrics: Record<string, number>[] = [];
    const finite = await accumulate(state.engine, record, batch, s, metrics, call, () => tick(++done, total));
    steps.push(await optimizerStep(state.engine, record, lr, finite));
    faultPoint('write.step', { iteration: record.iteration, step: s });
    perStep.push(reduceActorMetrics(metrics));
  }
  const digests = await state.seal(call);
  faultPoint('write.sealed', { iteration: record.iteration });
  const taken = steps.some((step) => step.taken);
  const loss = perStep.at(-1)?.['actor/loss'];
  return {
    outcome: taken ? 'applied' : 'skipped',
    ...(taken
      ? {}
      : {
          reason:
            total === 0
              ? 'the batch has no samples: every group was filtered'
              : `no optimiser step taken: loss ${loss}, gradient norm ${steps.at(-1)?.gradNorm}`,
        }),
    stateDigest: digests.stateDigest,
    components: { actor: { ...digests, publications: { F32: digests.weightsDigest }, steps } },
    after: { ...record.after, badSteps: taken ? 0 : record.before.badSteps + 1 },
    metrics: updateMetrics(perStep, steps, record),
  };
}

/** Forward, loss and backward of every micro-batch of optimiser step s. False when a loss is not finite. */
async function accumulate(
  engine: PolicyEngine,
  record: BatchRecord,
  batch: BatchTensors,
  s: number,
  metrics: Record<string, number>[],
  call: Call,
  onMicroBatch: () => void,
): Promise<boolean> {
  const micros = range(batch.stepOffsets_U1, s).map((m) =>
    batch.microSamples.subarray(...bounds(batch.microOffsets_M1, m)),
  );
  const totals = stepTotals(
    batch,
    micros.flatMap((samples) => [...samples]),
    actorOf(record.components).loss,
  );
  const entropy =
    actorOf(record.components).loss.kind === 'policy' &&
    (actorOf(record.components).loss.entropyCoeff !== 0 || isOwnForward(record));
  let finite = true;
  for (const samples of micros) {
    const micro = cutMicroBatch(batch, samples, record.layout);
    const wants = entropy ? (['logProbs', 'entropy'] as const) : (['logProbs'] as const);
    const options = { temperature: actorOf(record.components).loss.temperature, wants, keep: true };
    const forward = await engine.forward(micro.packed, options, call);
    const coefficients = lossCoefficients(actorOf(record.components).loss, batch, micro, forward.outputs, totals);
    finite &&= Number.isFinite(coefficients.loss);
    if (finite) await engine.backward(forward.handle, coefficients.gradients, call);
    else await engine.discard(forward.handle);
    metrics.push({ ...coefficients.metrics, 'actor/loss': coefficients.loss });
    onMicroBatch();
  }
  return finite;
}

/** One step: the policy of its forward pass is the one that sampled. With more, the batch was made with its entropy. */
const isOwnForward = ({ oldLogProbs }: BatchRecord): boolean => oldLogProbs === 'on-policy';

async function optimizerStep(
  engine: PolicyEngine,
  record: BatchRecord,
  lr: number,
  finite: boolean,
): Promise<OptimizerStep> {
  if (!finite) {
    await engine.zeroGrads();
    return { lr, gradNorm: 'NaN', taken: false };
  }
  const { gradNorm, taken } = await engine.step({ ...actorOf(record.components).optimizer, lr });
  return { lr, gradNorm: numberToJson(gradNorm), taken };
}

function updateMetrics(
  perStep: readonly Record<string, number>[],
  steps: readonly OptimizerStep[],
  record: BatchRecord,
): UpdateOutput['metrics'] {
  const mean: Record<string, number> = {};
  for (const metrics of perStep) {
    for (const [name, value] of Object.entries(metrics)) mean[name] = (mean[name] ?? 0) + value / perStep.length;
  }
  const entropy = perStep[0]?.['actor/entropy_loss'];
  if (entropy !== undefined && isOwnForward(record)) mean['actor/entropy'] = entropy;
  if (actorOf(record.components).loss.entropyCoeff === 0) delete mean['actor/entropy_loss'];
  if (actorOf(record.components).loss.kind === 'sft' && mean['actor/loss'] !== undefined)
    mean['train/loss'] = mean['actor/loss'];
  if (steps.length > 0) {
    const norms = steps.map((step) => Number(step.gradNorm));
    mean['actor/grad_norm'] = norms.reduce((sum, norm) => sum + norm, 0) / norms.length;
    mean['actor/lr'] = at(steps, -1).lr;
  }
  mean['training/skipped_steps'] = steps.filter((step) => !step.taken).length;
  return Object.fromEntries(Object.entries(mean).map(([name, value]) => [name, numberToJson(value)]));
}

function bounds(offsets: Int32Array, index: number): [number, number] {
  return [at(offsets, index), at(offsets, index + 1)];
}

function range(offsets: Int32Array, index: number): number[] {
  const [start, end] = bounds(offsets, index);
  return Array.from({ length: end - start }, (_, i) => start + i);
}
