/** What the models say of a batch before it is trained on: old and reference log-probs, and values of the critic. */
import { samplesResponses } from '../../../core/run-kinds.ts';
import { at } from '../../../core/at.ts';
import type { Digest } from '../../../core/ids.ts';
import { rowsOf } from '../../../core/ports/one-lane.ts';
import type { PolicyEngine, ScoringModel } from '../../../core/ports/policy.ts';
import { componentOf } from '../../../core/records/components.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import { needsOfEstimator, needsOfLoss } from '../../../core/rl/names.ts';
import type { AdvantageName, AdvantageNeed, PolicyLossName } from '../../../core/rl/names.ts';
import type { AdvantageInput, AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import { getBlob } from '../../../log/objects/blobs.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { decodeValues } from '../../../models/values.ts';
import { everySampleOnce } from '../losses/every-sample-once.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { logZOfRows } from '../losses/log-z.ts';
import { readsRewardModel } from '../losses/prime.ts';
import type { StageTimer } from '../job/stage-timer.ts';
import { teacherTensors } from './teacher.ts';

/** A batch whose advantages are not known yet. */
export type Layout = Omit<BatchTensors, 'advantages_T' | 'returns_T' | 'rewards_S'>;

/** A batch with what the models say of it. */
export interface MadeOutputs {
  readonly layout: Layout;
  /** Entropy of the policy before the update. */
  readonly entropy_T?: Float32Array;
  /** Σ π² over the vocabulary at each token, where the estimator reads it. */
  readonly sumPiSquared_T?: Float32Array;
  /** Log-probs of the implicit reward model before the update, when the batch is made with them. */
  readonly rewardModelLogProbs_T?: Float32Array;
}

/** Who is asked about which batch. */
interface Asked {
  readonly host: EngineHost;
  readonly input: AdvantageInput;
  readonly context: JobContext;
  readonly layout: Layout;
  /** Optimiser steps of the update. */
  readonly steps: number;
}

/** What one model is asked about the batch. */
interface Question<Answer> {
  /** `timing_s/<name>` has the seconds. */
  readonly name: string;
  readonly isAsked: (of: Asked) => boolean;
  readonly answer: (of: Asked) => Promise<Answer>;
}

/** With one step the old log-probs are those of the update's own forward pass, unless the batch itself reads them. */
const oldLogProbs: Question<Record<'logProbs' | 'entropy', Float32Array> & { readonly sumPiSquared?: Float32Array }> = {
  name: 'old_log_prob',
  isAsked: ({ input, steps }) =>
    samplesResponses(input.kind) && !input.algorithm.bypass && (steps > 1 || (steps === 1 && readsOldLogProbs(input))),
  async answer(of) {
    const { engine } = await modelsOf(of);
    const wants = ['logProbs', 'entropy'] as const;
    if (!needsOf(of.input).includes('sumPiSquared')) return forward(of, engine, wants, 'old log-probs');
    return forward(of, engine, [...wants, 'sumPiSquared'], 'old log-probs');
  },
};

const referenceLogProbs: Question<Record<'logProbs', Float32Array>> = {
  name: 'ref',
  isAsked: ({ input: { kind, algorithm } }) =>
    kind === 'dpo' ||
    (samplesResponses(kind) &&
      (readsReference(algorithm.loss) || algorithm.klInReward !== undefined || algorithm.rewardModel !== undefined)),
  async answer(of) {
    const { inputs, profile, algorithm } = of.input;
    const reference = await of.host.frozen('reference', of.context, inputs.reference ?? inputs.model, profile);
    return forward(of, reference, ['logProbs'], 'reference log-probs', algorithm.maxTokensOfReference);
  },
};

const logZ: Question<Record<'values', Float32Array>> = {
  name: 'log_z',
  isAsked: ({ input }) => input.algorithm.logZ !== undefined,
  answer: async (of) => forward(of, await componentAt(of, 'logZ'), ['values'], 'log Z of the prompts'),
};

const rewardModelLogProbs: Question<Record<'logProbs', Float32Array>> = {
  name: 'reward_model',
  isAsked: ({ input }) => readsRewardModel(input.algorithm),
  answer: async (of) => forward(of, await componentAt(of, 'rewardModel'), ['logProbs'], 'rewards of tokens'),
};

const teacher: Question<Partial<Layout>> = {
  name: 'teacher',
  isAsked: ({ input: { algorithm, inputs } }) =>
    algorithm.loss.distillation !== undefined && inputs.teacher !== undefined,
  async answer({ host, input, context, layout }) {
    const { algorithm, inputs, profile } = input;
    const { distillation } = algorithm.loss;
    if (distillation === undefined || inputs.teacher === undefined) return {};
    const engine = await host.frozen('teacher', context, inputs.teacher, profile);
    return teacherTensors(engine, layout, algorithm, distillation, context);
  },
};

const values: Question<Record<'values', Float32Array>> = {
  name: 'values',
  isAsked: ({ input }) => samplesResponses(input.kind) && readsValues(input),
  async answer(of) {
    const { host, input, context, layout } = of;
    if (input.values !== undefined) return valuesOfOther(host, context, input.values, layout);
    return forward(of, await componentAt(of, 'critic'), ['values'], 'values');
  },
};

/**
 * Asks the models that are needed, one after the other. With `bypass` the log-probs of the rollout are the old ones.
 */
export async function withOutputs(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  layout: Layout,
  steps: number,
  timer: StageTimer,
): Promise<MadeOutputs> {
  const of: Asked = { host, input, context, layout, steps };
  const ask = async <Answer>({ name, isAsked, answer }: Question<Answer>): Promise<Answer | undefined> =>
    isAsked(of) ? timer.time(`timing_s/${name}`, () => answer(of)) : undefined;
  const old = await ask(oldLogProbs);
  const reference = await ask(referenceLogProbs);
  const ofPrompts = await ask(logZ);
  const rewardModel = await ask(rewardModelLogProbs);
  const taught = await ask(teacher);
  const critic = await ask(values);
  return {
    layout: {
      ...layout,
      ...(old && { oldLogProbs_T: old.logProbs }),
      ...(input.algorithm.bypass && layout.rolloutLogProbs_T && { oldLogProbs_T: layout.rolloutLogProbs_T }),
      ...(reference && { refLogProbs_T: reference.logProbs }),
      ...(ofPrompts && { logZ_S: logZOfRows(ofPrompts.values, layout.scoredOffsets_S1) }),
      ...taught,
      ...(critic && { values_T: critic.values }),
    },
    ...(old && { entropy_T: old.entropy }),
    ...(old?.sumPiSquared && { sumPiSquared_T: old.sumPiSquared }),
    ...(rewardModel && { rewardModelLogProbs_T: rewardModel.logProbs }),
  };
}

/** The state before the update. */
const modelsOf = ({ host, input, context }: Asked) =>
  host.stateAt(context, { ...input, model: input.inputs.model }, input.partState ?? input.parentState);

const componentAt = async (of: Asked, name: string): Promise<PolicyEngine> =>
  componentOf((await modelsOf(of)).engines, name);

const forward = <Wanted extends TokenOutput>(
  { layout, input, context }: Asked,
  engine: ScoringModel,
  wants: readonly Wanted[],
  note: string,
  mostTokens?: number,
) => outputsOf(engine, layout, input.algorithm, wants, note, context, mostTokens);

/** The needs of one of petrel's estimators; one of the user's own says its needs in its module. */
const needsOf = ({ inputs, algorithm }: AdvantageInput): readonly AdvantageNeed[] =>
  inputs.estimator === undefined ? needsOfEstimator(algorithm.advEstimator as AdvantageName) : [];

/** Does the batch itself need them, and not only its update? */
const readsOldLogProbs = (input: AdvantageInput): boolean =>
  input.algorithm.klInReward !== undefined ||
  input.algorithm.rolloutCorrection !== undefined ||
  input.algorithm.logZ !== undefined ||
  input.algorithm.spo?.rho === 'kl' ||
  needsOf(input).includes('oldLogProbs');

const readsReference = ({ useKlLoss, lossMode }: LossSettings): boolean =>
  useKlLoss || needsOfLoss(lossMode as PolicyLossName).includes('refLogProbs');

/** An estimator of the user's own gets values wherever there is a critic. */
const readsValues = (input: AdvantageInput): boolean =>
  input.inputs.estimator === undefined ? needsOf(input).includes('values') : input.algorithm.critic !== undefined;

type TokenOutput = 'logProbs' | 'entropy' | 'sumPiSquared' | 'values';

/** The values that the critic's own job has made. */
async function valuesOfOther(
  host: EngineHost,
  context: JobContext,
  digest: Digest,
  layout: Layout,
): Promise<Record<'values', Float32Array>> {
  const bytes = await getBlob(await host.store(context.store), context.runId, digest);
  return { values: decodeValues(bytes, digest, layout.scored_T.length) };
}

/** Outputs at every response token, [T]; every sample once, in the micro-batches of the first epoch. */
export async function outputsOf<Wanted extends TokenOutput>(
  engine: ScoringModel,
  layout: Layout,
  { loss: { temperature }, layout: batchLayout }: Pick<AlgorithmSettings, 'loss' | 'layout'>,
  wants: readonly Wanted[],
  note: string,
  context: JobContext,
  mostTokens?: number,
): Promise<Record<Wanted, Float32Array>> {
  const found = Object.fromEntries(wants.map((name) => [name, new Float32Array(layout.scored_T.length)])) as Record<
    Wanted,
    Float32Array
  >;
  const onDone = (done: number, total: number) => context.progress(done, total, note);
  const passes = everySampleOnce(layout, batchLayout, onDone, mostTokens);
  const options = { temperature, wants, keep: false };
  for (const row of rowsOf(passes, engine)) {
    const results = await engine.forward(
      row.map(({ packed }) => packed),
      options,
      { signal: context.signal },
    );
    for (const [lane, { outputs }] of results.entries())
      for (const name of wants) scatter(outputs[name], at(row, lane).tokens_P, found[name]);
  }
  return found;
}

/** Writes the values of a pass at their tokens. */
function scatter(values_P: Float32Array, tokens_P: Int32Array, values_T: Float32Array): void {
  if (values_P.length < tokens_P.length) throw new RangeError(`${values_P.length} values of ${tokens_P.length} tokens`);
  for (let p = 0; p < tokens_P.length; p++) values_T[tokens_P[p] as number] = values_P[p] as number;
}
