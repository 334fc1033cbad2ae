/** Applying a batch: a function (state, committed batch) → state. Live and replay run exactly this. */
import { at } from '../../../core/at.ts';
import { rowsOf } from '../../../core/ports/one-lane.ts';
import type { Call, OutputArrays, OutputName, PackedBatch, PolicyEngine } from '../../../core/ports/policy.ts';
import { actorOf, componentOf, mainName, mapComponents } from '../../../core/records/components.ts';
import type { Components } from '../../../core/records/components.ts';
import type { BatchRecord, OptimizerStep, OwnModuleInput } from '../../../core/records/schema.ts';
import { reduceActorMetrics } from '../../../core/rl/actor-total.ts';
import type { PolicyLossResult } from '../../../core/rl/policy-loss/index.ts';
import { signalAndNoise } from '../../../core/rl/variance-proxy.ts';
import { mergeStepMetrics } from '../../../core/rl/merge-step-metrics.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { UpdateOutput } from '../../../core/wire/jobs/index.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import type { Stored } from '../../../log/objects/records.ts';
import { studentPass } from '../losses/distil.ts';
import { numberToJson } from '../samples/json-numbers.ts';
import { logZCoefficients } from '../losses/log-z.ts';
import { actorConfig, lossCoefficients, ownLossInput, stepTotals, valueCoefficients } from '../losses/loss.ts';
import type { LossInputs, StepTotals } from '../losses/loss-terms.ts';
import { cutMicroBatch } from '../losses/micro-batch.ts';
import type { MicroBatch } from '../losses/micro-batch.ts';
import type { OwnLoss } from '../job/own-modules.ts';
import { primeCoefficients } from '../losses/prime.ts';
import { rewritingOf } from '../losses/rewriting.ts';
import { dpoCoefficients, rewardModelCoefficients } from '../losses/pair-loss.ts';
import { packWhole } from '../samples/sequence-ends.ts';
import type { RunState } from '../state/state.ts';
import { StepRouting } from './routing.ts';
import type { MicroPlace, ReadableBatch } from '../samples/stored-batch.ts';

export interface UpdateCall {
  /** Called after every micro-batch and every few blocks of the digest: committed work. */
  readonly tick: (done: number, total: number) => void;
  /** Aborted when the result is no longer needed. */
  readonly signal?: AbortSignal;
  /** Needed where a record names a loss of the user's own. */
  readonly ownLoss?: OwnLoss;
}

/** Trains those components of the batch that the state has. Leaves the state dirty when it is aborted. */
export async function applyBatch(
  state: Pick<RunState, 'tag' | 'engines' | 'markDirty' | 'seal'>,
  { record, digest }: Pick<Stored<BatchRecord>, 'record' | 'digest'>,
  batch: ReadableBatch,
  { tick, signal, ownLoss }: UpdateCall,
): Promise<UpdateOutput> {
  const components = Object.entries(record.components).filter(([name]) => name in state.engines);
  const micros = batch.index.microOffsets_M1.length - 1;
  const total = micros * components.filter(([, { learningRates }]) => learningRates.length > 0).length;
  let done = 0;
  const call: Call = { tick: () => tick(done, total), ...(signal && { signal }) };
  const parent = state.tag;
  if (parent === undefined) throw new Error('a batch is applied to a clean state');
  state.markDirty();
  const facts = { iteration: record.iteration, components: Object.keys(state.engines).join(' ') };
  faultPoint('write.dirty', facts);
  const trained: Record<string, Trained> = {};
  let known = batch;
  let ofRewriting: Readonly<Record<string, number>> = {};
  const learnFirst = ([, { loss }]: (typeof components)[number]) => rewritingOf(loss) !== undefined;
  for (const [name, settings] of [...components.filter(learnFirst), ...components.filter((one) => !learnFirst(one))]) {
    const engine = componentOf(state.engines, name);
    trained[name] = await train({ name, engine, settings, record, batch: known, call, ownLoss }, () =>
      tick(++done, total),
    );
    const rewriting = rewritingOf(settings.loss);
    if (rewriting !== undefined && micros > 0)
      ({ batch: known, metrics: ofRewriting } = await rewriting(engine, settings, record.layout, known, call));
  }
  const changed = new Set(Object.keys(trained).filter((name) => trained[name]?.steps.some((step) => step.taken)));
  const digests = await state.seal(call, { parent, batch: digest, changed });
  faultPoint('write.sealed', facts);
  const taken = Object.values(trained).some(({ steps }) => steps.some((step) => step.taken));
  return {
    outcome: taken ? 'applied' : 'skipped',
    ...(taken ? {} : { reason: reasonOf(firstTrained(trained), micros) }),
    stateDigest: digests.stateDigest,
    components: mapComponents(digests.components, ({ stateDigest, weightsDigest, incarnation }, name) => ({
      stateDigest,
      weightsDigest,
      ...(incarnation !== undefined && { incarnation }),
      publications:
        name === 'actor' && digests.publication !== undefined
          ? { [digests.publication.format]: digests.publication.digest }
          : { F32: weightsDigest },
      steps: [...componentOf(trained, name).steps],
    })),
    after: { ...record.after, badSteps: taken ? 0 : record.before.badSteps + 1 },
    metrics: metricsOf(trained, record, batch.index.rewards_S.length, ofRewriting),
  };
}

type Settings = BatchRecord['components'][string];

/** What the optimiser steps of a component were like: the metrics of each are means over its micro-batches. */
interface Trained {
  readonly settings: Settings;
  readonly steps: readonly OptimizerStep[];
  readonly perStep: readonly Readonly<Record<string, number>>[];
  /** Says for each step how evenly a mixture of experts was used. Empty for other models. */
  readonly routing: readonly Readonly<Record<string, number>>[];
}

async function train(training: Training, onMicroBatch: () => void): Promise<Trained> {
  const { name, engine, settings, record } = training;
  const steps: OptimizerStep[] = [];
  const perStep: Record<string, number>[] = [];
  const routing: Record<string, number>[] = [];
  for (const [s, lr] of settings.learningRates.entries()) {
    const metrics: Record<string, number>[] = [];
    const routed = new StepRouting(engine, settings.loss.routerAuxLossCoef ?? 0);
    const finite = await accumulate(training, s, metrics, routed, onMicroBatch);
    steps.push(await optimizerStep(engine, settings, lr, finite));
    faultPoint('write.step', { iteration: record.iteration, component: name, step: s });
    perStep.push(joinMetrics(settings, metrics));
    routing.push(routed.metrics());
  }
  return { settings, steps, perStep, routing };
}

/** The policy, but for iterations that train only the critic. */
const firstTrained = (trained: Components<Trained>): Trained =>
  Object.values(trained).find(({ steps }) => steps.length > 0) ?? actorOf(trained);

/** Metrics of pairs are divided by the pairs of the step, so they add up. */
function joinMetrics({ loss }: Settings, metrics: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  if (loss.kind !== 'dpo' && loss.kind !== 'rm') return reduceActorMetrics(metrics);
  const sums: Record<string, number> = {};
  for (const [name, value] of metrics.flatMap((one) => Object.entries(one))) sums[name] = (sums[name] ?? 0) + value;
  return sums;
}

function reasonOf({ settings, steps, perStep }: Trained, microBatches: number): string {
  if (microBatches === 0) return 'the batch has no samples: every group was filtered';
  return `no optimiser step taken: loss ${perStep.at(-1)?.[lossMetric(settings)]}, gradient norm ${steps.at(-1)?.gradNorm}`;
}

interface Training {
  readonly name: string;
  readonly engine: PolicyEngine;
  readonly settings: Settings;
  readonly record: BatchRecord;
  readonly batch: ReadableBatch;
  readonly call: Call;
  readonly ownLoss: OwnLoss | undefined;
}

/**
 * Forward, loss and backward of every micro-batch of optimiser step s, side by side in the lanes of the engine. False
 * when a loss is not finite.
 */
async function accumulate(
  training: Training,
  s: number,
  metrics: Record<string, number>[],
  routing: StepRouting,
  onMicroBatch: () => void,
): Promise<boolean> {
  const { settings, record, batch, engine, call } = training;
  const { stepOffsets_U1, microOffsets_M1, microSamples } = batch.index;
  const micros = range(stepOffsets_U1, s);
  const [first, end] = [at(stepOffsets_U1, s), at(stepOffsets_U1, s + 1)];
  const samplesOfStep = microSamples.subarray(at(microOffsets_M1, first), at(microOffsets_M1, end));
  const totals = stepTotals(batch.index, samplesOfStep, settings.loss);
  let finite = true;
  for (const row of rowsOf(micros.entries(), engine)) {
    const passes: Pass[] = [];
    // A shard is in memory only while its micro-batches are computed.
    const shares: number[] = [];
    for (const [m, micro] of row) {
      const place = await batch.micro(micro);
      passes.push(passOf(training, place, totals, [record.iteration, s, m]));
      shares.push(place.samples.length / samplesOfStep.length);
    }
    const computed = await forwardRow(training, passes, routing, shares);
    finite &&= computed.every(({ coefficients }) => Number.isFinite(coefficients.loss));
    if (finite)
      await engine.backward(
        computed.map(({ handle, coefficients: { gradients } }) => ({ handle, gradients })),
        call,
      );
    else await engine.discard(computed.map(({ handle }) => handle));
    for (const { coefficients } of computed) {
      metrics.push({ ...coefficients.metrics, [lossMetric(settings)]: coefficients.loss });
      onMicroBatch();
    }
  }
  return finite;
}

/** What a loss says of a micro-batch: its gradients by output, and what it reports. */
type Coefficients = ReturnType<typeof lossCoefficients>;

/** A forward pass of a micro-batch, and d(loss)/d(output) of what its loss reads. */
interface Pass {
  readonly packed: () => PackedBatch;
  readonly wants: readonly OutputName[];
  readonly coefficients: (outputs: OutputArrays) => Coefficients | Promise<Coefficients>;
}

/** The micro-batches of all lanes: forward together, and the loss of each. `shares`: of the step's samples. */
async function forwardRow(
  { engine, settings: { loss }, call }: Training,
  row: readonly Pass[],
  routing: StepRouting,
  shares: readonly number[],
): Promise<{ readonly handle: number; readonly coefficients: Coefficients }[]> {
  const options = { temperature: loss.temperature, keep: true, wants: [...at(row, 0).wants, ...routing.wants] };
  const results = await engine.forward(
    row.map(({ packed }) => packed()),
    options,
    call,
  );
  const computed: { handle: number; coefficients: Coefficients }[] = [];
  try {
    // A pass reads the outputs that it wants, and no others.
    for (const [lane, { handle, outputs }] of results.entries()) {
      const own = await at(row, lane).coefficients(outputs as OutputArrays);
      const { loss, gradients } = routing.add(outputs, at(shares, lane));
      const whole = { ...own, loss: own.loss + loss, gradients: { ...own.gradients, ...gradients } };
      computed.push({ handle, coefficients: whole });
    }
    return computed;
  } catch (error) {
    await engine.discard(results.map(({ handle }) => handle));
    throw error;
  }
}

/** The pass of a micro-batch for the loss of its component. `seed` names the micro-batch. */
function passOf(
  training: Training,
  { tensors: batch, samples }: MicroPlace,
  totals: StepTotals,
  seed: readonly number[],
): Pass {
  const { settings, record } = training;
  const { loss } = settings;
  if (loss.kind === 'rm')
    return {
      packed: () => packWhole(sequencesOf(batch, samples), padTokenOf(loss)),
      wants: ['scores'],
      coefficients: ({ scores }) => rewardModelCoefficients(scores, totals.globalBatchSize),
    };
  let cut: MicroBatch | undefined;
  const micro = () => (cut ??= cutMicroBatch(batch, samples, record.layout));
  const packed = () => micro().packed;
  if (loss.kind === 'value' || loss.kind === 'logZ') {
    const coefficientsOf = loss.kind === 'value' ? valueCoefficients : logZCoefficients;
    return {
      packed,
      wants: ['values'],
      coefficients: ({ values }) => coefficientsOf(loss, batch, micro(), values, totals),
    };
  }
  const { prime } = loss;
  if (prime !== undefined)
    return {
      packed,
      wants: ['logProbs'],
      coefficients: ({ logProbs }) => primeCoefficients(prime, batch, micro(), logProbs, totals),
    };
  const entropy =
    loss.kind === 'policy' &&
    (readsEntropy(loss) || isOwnForward(record) || loss.own?.needs.includes('entropy') === true);
  return {
    packed: () => studentPass(loss, batch, micro()),
    wants: entropy ? ['logProbs', 'entropy'] : ['logProbs'],
    coefficients: async (outputs) => {
      if (loss.kind === 'dpo') return dpoCoefficients(loss, batch, micro(), outputs.logProbs, totals.globalBatchSize);
      const own = loss.own && (await ownResult(training, batch, loss.own, micro(), outputs, totals, seed));
      return lossCoefficients(loss, batch, micro(), outputs, totals, seed, own);
    },
  };
}

const readsEntropy = ({ entropyCoeff, calculateEntropy }: Settings['loss']): boolean =>
  entropyCoeff !== 0 || calculateEntropy === true;

function ownResult(
  { record, settings, ownLoss }: Training,
  batch: BatchTensors,
  own: OwnModuleInput,
  micro: MicroBatch,
  outputs: LossInputs,
  totals: StepTotals,
  seed: readonly number[],
): Promise<PolicyLossResult> {
  if (ownLoss === undefined) throw new Error(`nothing here runs the loss ${own.fileName}`);
  const config = actorConfig(settings.loss, totals, seed);
  return ownLoss(record.runId, own, ownLossInput(batch, micro, outputs), config);
}

/** Undefined when the model has none. */
const padTokenOf = ({ constants }: Settings['loss']): number | undefined =>
  constants?.['padToken'] === undefined ? undefined : Number(constants['padToken']);

const sequencesOf = (batch: BatchTensors, samples: Int32Array): Int32Array[] =>
  Array.from(samples, (b) => batch.tokens_N.subarray(at(batch.offsets_S1, b), at(batch.offsets_S1, b + 1)));

/** One step: the policy of its forward pass is the one that sampled. With more, the batch was made with its entropy. */
const isOwnForward = ({ oldLogProbs }: BatchRecord): boolean => oldLogProbs === 'on-policy';

async function optimizerStep(
  engine: PolicyEngine,
  { optimizer }: Settings,
  lr: number,
  finite: boolean,
): Promise<OptimizerStep> {
  if (!finite) {
    await engine.zeroGrads();
    return { lr, gradNorm: 'NaN', taken: false };
  }
  const { gradNorm, taken } = await engine.step({ ...optimizer, lr });
  return { lr, gradNorm: numberToJson(gradNorm), taken };
}

function metricsOf(
  trained: Components<Trained>,
  record: BatchRecord,
  samples: number,
  ofRewriting: Readonly<Record<string, number>>,
): UpdateOutput['metrics'] {
  const { critic, logZ, rewardModel } = trained;
  const main = trained[mainName(record.components)];
  const all = {
    ...(main && mainMetrics(main, record, samples)),
    'training/skipped_steps': firstTrained(trained).steps.filter((step) => !step.taken).length,
    ...(critic && mergeSteps(critic, 'critic')),
    ...(logZ && mergeSteps(logZ, 'log_z')),
    ...(rewardModel && mergeSteps(rewardModel, 'reward_model')),
    ...ofRewriting,
  };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, numberToJson(value)]));
}

/** Metrics of what the run is about: the policy, or a reward model. */
function mainMetrics(trained: Trained, record: BatchRecord, samples: number): Record<string, number> {
  const { settings, perStep } = trained;
  const merged = mergeSteps(trained, settings.loss.kind === 'rm' ? 'reward_model' : 'actor');
  const entropy = perStep[0]?.['actor/entropy_loss'];
  if (entropy !== undefined && isOwnForward(record)) merged['actor/entropy'] = entropy;
  if (!readsEntropy(settings.loss)) delete merged['actor/entropy_loss'];
  const loss = merged[lossMetric(settings)];
  const power = record.metrics['variance_proxy/proxy2_total_power'];
  if (power !== undefined) Object.assign(merged, signalAndNoise(Number(power), samples, merged['actor/grad_norm']));
  if (settings.loss.kind !== 'policy' && loss !== undefined) merged['train/loss'] = loss;
  return merged;
}

/** Every optimiser step counts the same, whatever its samples: each moves the weights once. */
function mergeSteps(
  { steps, perStep, routing }: Trained,
  component: 'actor' | 'critic' | 'log_z' | 'reward_model',
): Record<string, number> {
  const ofStep = ({ gradNorm, lr }: OptimizerStep) => ({
    [`${component}/grad_norm`]: Number(gradNorm),
    [`${component}/lr`]: lr,
  });
  return mergeStepMetrics(
    perStep.map((metrics, s) => ({
      metrics: { ...metrics, ...ofStep(at(steps, s)), ...named(component, at(routing, s)) },
      samples: 1,
    })),
  );
}

const named = (component: string, metrics: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${component}/${name}`, value]));

/** The metric that shows a component's loss. */
const lossMetric = ({ loss }: Settings): string => lossMetrics[loss.kind];

const lossMetrics: Readonly<Record<Settings['loss']['kind'], string>> = {
  policy: 'actor/loss',
  sft: 'actor/loss',
  value: 'critic/vf_loss',
  logZ: 'log_z/loss',
  prime: 'reward_model/dpo_loss',
  dpo: 'actor/loss',
  rm: 'reward_model/loss',
};

function range(offsets: Int32Array, index: number): number[] {
  const [start, end] = [at(offsets, index), at(offsets, index + 1)];
  return Array.from({ length: end - start }, (_, i) => start + i);
}
