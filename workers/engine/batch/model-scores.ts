/**
 * A reward model beside the scorer: reward = weight · score of the model + scorer_weight · score of the scorer. verl's
 * `reward_model.enable` has no such sum: there the model's score is the reward, which are the defaults here (1 and 0).
 * Both are columns of the sample, so each has its mean among the metrics.
 */
import { at } from '../../../core/at.ts';
import type { Digest } from '../../../core/ids.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { isOnnxFolder } from '../../../infra/onnx/classifier.ts';
import { padTokenOf } from '../../../models/config.ts';
import { readConfigJson } from '../../../models/folder.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { byScores, judged, wholeOf } from './judge.ts';
import type { Composition } from '../samples/samples.ts';
import type { StageTimer } from '../job/stage-timer.ts';

export interface ScoredComposition {
  readonly composition: Composition;
  /** Scores of the reward model, one for each sample. Absent: the run has none. */
  readonly modelScores_S?: Float32Array;
}

/** The samples with their rewards. */
export async function withModelScores(
  host: EngineHost,
  { inputs, algorithm, profile }: AdvantageInput,
  context: JobContext,
  composition: Composition,
  timer: StageTimer,
): Promise<ScoredComposition> {
  const model = inputs.rewardModel;
  if (model === undefined || algorithm.modelScores === undefined) return { composition };
  const { weight, scorerWeight } = algorithm.modelScores;
  const scores = await timer.time('timing_s/reward_model', () =>
    scoresOf(host, context, composition, { model, profile, tokens: algorithm.maxTokensPerMicroBatch }),
  );
  const samples = composition.samples.map((sample, s) => ({
    ...sample,
    score: weight * at(scores, s) + scorerWeight * sample.score,
    columns: { ...sample.columns, reward_model: at(scores, s), scorer: sample.score },
  }));
  return { composition: { ...composition, samples }, modelScores_S: Float32Array.from(scores) };
}

interface Scoring {
  readonly model: Digest;
  readonly profile: NumericProfile;
  /** Tokens of a pass. */
  readonly tokens: number;
}

/** Scores by the engine, or by ONNX Runtime when the model's folder has a graph. */
async function scoresOf(
  host: EngineHost,
  context: JobContext,
  { samples }: Composition,
  { model, profile, tokens }: Scoring,
): Promise<ArrayLike<number>> {
  const progress = (done: number, total: number) => context.progress(done, total, 'scores of the reward model');
  if (isOnnxFolder(await host.modelFiles(context, model))) {
    const folder = await host.modelFolder(context, model);
    // ONNX Runtime is one process, which has the limit of one.
    const own = tokens / (profile.division?.sequence ?? 1);
    const options = { model, folder, alone: profile.deterministic, tokens: own, progress };
    return host.onnx.score(samples.map(wholeOf), options);
  }
  const engine = await host.frozen('rewardModel', context, model, profile);
  const config = await readConfigJson(await host.modelFolder(context, model, 'text'));
  return judged(byScores(engine, padTokenOf(config)), samples, tokens, progress);
}
