/**
 * A reward model beside the scorer: reward = weight · score of the model + scorer_weight · score of the scorer. verl's
 * `reward_model.enable` has no such sum: there the model's score is the reward, which are the defaults here (1 and 0).
 * Both are columns of the sample, so each has its mean among the metrics.
 */
import { at } from '../../core/at.ts';
import type { AdvantageInput } from '../../core/wire/jobs.ts';
import { padTokenOf } from '../../models/config.ts';
import { readConfigJson } from '../../models/weights.ts';
import type { EngineHost, JobContext } from './host.ts';
import { byScores, judged } from './judge.ts';
import type { Composition } from './samples.ts';
import type { StageTimer } from './stage-timer.ts';

export interface ScoredComposition {
  readonly composition: Composition;
  /** Of the reward model, one for each sample. Absent: the run has none. */
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
  const scores = await timer.time('timing_s/reward_model', async () => {
    const engine = await host.frozen('rewardModel', context, model, profile);
    const config = await readConfigJson(await host.modelFolder(context, model, 'text'));
    const judge = byScores(engine, padTokenOf(config));
    return judged(judge, composition.samples, algorithm.maxTokensPerMicroBatch, (done, total) =>
      context.progress(done, total, 'scores of the reward model'),
    );
  });
  const samples = composition.samples.map((sample, s) => ({
    ...sample,
    score: weight * at(scores, s) + scorerWeight * sample.score,
    columns: { ...sample.columns, reward_model: at(scores, s), scorer: sample.score },
  }));
  return { composition: { ...composition, samples }, modelScores_S: Float32Array.from(scores) };
}
