/** What the models say of a batch before it is trained on: old and reference log-probs, and values of the critic. */
import { samplesResponses } from '../../core/run-kinds.ts';
import { at } from '../../core/at.ts';
import type { Digest } from '../../core/ids.ts';
import { rowsOf } from '../../core/ports/one-lane.ts';
import type { PolicyEngine } from '../../core/ports/policy.ts';
import { componentOf } from '../../core/records/components.ts';
import type { LossSettings } from '../../core/records/schema.ts';
import { needsOfEstimator, needsOfLoss } from '../../core/rl/names.ts';
import type { AdvantageName, AdvantageNeed, PolicyLossName } from '../../core/rl/names.ts';
import type { AdvantageInput, AlgorithmSettings } from '../../core/wire/jobs.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { decodeValues } from '../../models/values.ts';
import { everySampleOnce } from './every-sample-once.ts';
import type { EngineHost, JobContext } from './host.ts';
import { logZOfRows } from './log-z.ts';
import { readsRewardModel } from './prime.ts';
import type { StageTimer } from './stage-timer.ts';
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

/**
 * Old log-probs where an update takes more than one step (with one, they are those of its own forward pass) or the
 * batch itself reads them, those of the rollout where it bypasses them, reference log-probs where the loss or the
 * reward asks for them, values where the estimator reads them.
 */
export async function withOutputs(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  layout: Layout,
  steps: number,
  timer: StageTimer,
): Promise<MadeOutputs> {
  const { algorithm, kind } = input;
  const isSampled = samplesResponses(kind);
  const readsSquares = needsOf(input).includes('sumPiSquared');
  const forward = <Wanted extends TokenOutput>(
    engine: PolicyEngine,
    wants: readonly Wanted[],
    note: string,
    mostTokens?: number,
  ) => outputsOf(engine, layout, algorithm, wants, note, context, mostTokens);
  const models = () =>
    host.stateAt(context, { ...input, model: input.inputs.model }, input.partState ?? input.parentState);
  const old =
    isSampled &&
    !algorithm.bypass &&
    (steps > 1 || (steps === 1 && readsOldLogProbs(input))) &&
    (await timer.time('timing_s/old_log_prob', async () =>
      forward(
        (
          await models()
        ).engine,
        ['logProbs', 'entropy', ...(readsSquares ? (['sumPiSquared'] as const) : [])],
        'old log-probs',
      ),
    ));
  const ref =
    ((isSampled &&
      (readsReference(algorithm.loss) || algorithm.klInReward !== undefined || algorithm.rewardModel !== undefined)) ||
      kind === 'dpo') &&
    (await timer.time('timing_s/ref', async () => {
      const reference = await host.frozen(
        'reference',
        context,
        input.inputs.reference ?? input.inputs.model,
        input.profile,
      );
      return forward(reference, ['logProbs'], 'reference log-probs', algorithm.maxTokensOfReference);
    }));
  const logZ =
    algorithm.logZ !== undefined &&
    (await timer.time('timing_s/log_z', async () =>
      forward(componentOf((await models()).engines, 'logZ'), ['values'], 'log Z of the prompts'),
    ));
  const rewardModel =
    readsRewardModel(algorithm) &&
    (await timer.time('timing_s/reward_model', async () =>
      forward(componentOf((await models()).engines, 'rewardModel'), ['logProbs'], 'rewards of tokens'),
    ));
  const { distillation } = algorithm.loss;
  const { teacher: teacherModel } = input.inputs;
  const teacher =
    distillation !== undefined &&
    teacherModel !== undefined &&
    (await timer.time('timing_s/teacher', async () =>
      teacherTensors(
        await host.frozen('teacher', context, teacherModel, input.profile),
        layout,
        algorithm,
        distillation,
        context,
      ),
    ));
  const critic =
    isSampled &&
    readsValues(input) &&
    (await timer.time('timing_s/values', async () =>
      input.values === undefined
        ? forward(componentOf((await models()).engines, 'critic'), ['values'], 'values')
        : valuesOfOther(host, context, input.values, layout),
    ));
  return {
    layout: {
      ...layout,
      ...(old && { oldLogProbs_T: old.logProbs }),
      ...(algorithm.bypass && layout.rolloutLogProbs_T && { oldLogProbs_T: layout.rolloutLogProbs_T }),
      ...(ref && { refLogProbs_T: ref.logProbs }),
      ...(logZ && { logZ_S: logZOfRows(logZ.values, layout.scoredOffsets_S1) }),
      ...teacher,
      ...(critic && { values_T: critic.values }),
    },
    ...(old && { entropy_T: old.entropy }),
    ...(old && readsSquares && { sumPiSquared_T: old.sumPiSquared }),
    ...(rewardModel && { rewardModelLogProbs_T: rewardModel.logProbs }),
  };
}

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
  engine: PolicyEngine,
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
      for (const name of wants) at(row, lane).tokens_P.forEach((t, p) => (found[name][t] = at(outputs[name], p)));
  }
  return found;
}
