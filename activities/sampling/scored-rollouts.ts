/** Rollouts with their scores. A reward job starts as soon as its rollout job has ended. */
import type { JobRequest, WaitOptions } from '../../core/ports/jobs.ts';
import type { MadeBy } from '../term/recompute.ts';
import { baselineJob, rewardJob, rolloutJobs } from './rollout-jobs.ts';
import type { Purpose } from './rollout-jobs.ts';
import type { RunContext } from '../term/run-context.ts';
import { wantsBaselines } from '../settings.ts';
import { endedJob, jobsOf } from '../scored-jobs.ts';
import type { ScoredJobs, ScoredRollout } from '../scored-jobs.ts';
import type { StageServices } from '../services.ts';
import { stageProgress, type OnJobProgress } from './progress.ts';
import { Waves } from './waves.ts';
import { runRollout, type At } from './rollouts.ts';

/** A scored rollout of this attempt, with the jobs that can recompute its blobs. */
type JustScored<T extends ScoredJobs> = T & { readonly madeBy: readonly MadeBy[] };

/** Progress of the two stages. Scores are reported only when all responses are there. */
interface ScoringProgress {
  readonly rollout: OnJobProgress;
  readonly reward: OnJobProgress;
  /** Rollout jobs without a result. */
  readonly sampling: Set<JobRequest<'rollout'>>;
}

/**
 * Resolves with the result of `use`, which gets the scored rollouts of a position in draw order. When `use` fails
 * because one of their blobs is lost, the blob is recomputed and `use` is called again.
 */
export async function withScoredRollouts<T>(
  services: StageServices,
  at: At,
  purpose: Purpose,
  use: (scored: readonly ScoredRollout[]) => Promise<T>,
): Promise<T> {
  const { context, head, signal } = at;
  const haveWeights = await services.weights.beforeRollouts(context, head, signal);
  for (;;) {
    const scored: JustScored<ScoredRollout>[] = [];
    try {
      const waves = new Waves(services, at, purpose);
      do scored.push(...(await scoredWave(services, at, purpose, waves.wave)));
      while (await waves.needsAnother(scored));
      haveWeights();
      return await use(scored);
    } catch (error) {
      const madeBy = scored.flatMap((one) => one.madeBy);
      if (!services.recompute.lost(error, madeBy)) throw error;
    }
  }
}

/** The rollouts of one wave, in draw order. */
async function scoredWave(
  services: StageServices,
  at: At,
  purpose: Purpose,
  wave: number,
): Promise<JustScored<ScoredRollout>[]> {
  const { context, head } = at;
  const jobs = rolloutJobs(context, head, purpose, wave);
  const progress = scoringProgress(services, at, purpose, jobs);
  const withBaselines = purpose === 'train' && wantsBaselines(context.recipe);
  const score = async (job: JobRequest<'rollout'>, again: number): Promise<JustScored<ScoredRollout>> => {
    const [own, baseline] = await Promise.all([
      scoredJobs(services, at, job, again, progress),
      withBaselines ? scoredJobs(services, at, baselineJob(context, job), again, unwatched) : undefined,
    ]);
    if (baseline === undefined) return { wave, ...own };
    return { wave, ...own, baseline, madeBy: [...own.madeBy, ...baseline.madeBy] };
  };
  const first = await Promise.all(jobs.map((job) => score(job, 0)));
  const again = purpose === 'train' ? await timesToScoreAgain(services, at, first) : 0;
  if (again === 0) return first;
  return Promise.all(
    jobs.map((job, i) => {
      const before = first[i];
      return before !== undefined && jobsOf(before).every(({ failed }) => failed === 0) ? before : score(job, again);
    }),
  );
}

function scoringProgress(
  { ports }: StageServices,
  { context, head }: At,
  purpose: Purpose,
  jobs: readonly JobRequest<'rollout'>[],
): ScoringProgress {
  const common = { runId: context.log.runId, iteration: head.position + 1, jobs: jobs.length };
  const stage = (name: string) => (purpose === 'train' ? name : 'evaluate');
  return {
    sampling: new Set(jobs),
    rollout: stageProgress(ports, { ...common, stage: stage('rollout'), unit: 'tokens' }),
    reward: stageProgress(ports, { ...common, stage: stage('reward'), unit: 'samples' }),
  };
}

/** Greedy responses are few: the stages report the progress of the others. */
const unwatched: ScoringProgress = { rollout: () => {}, reward: () => {}, sampling: new Set() };

async function scoredJobs(
  services: StageServices,
  at: At,
  job: JobRequest<'rollout'>,
  again: number,
  progress: ScoringProgress,
): Promise<JustScored<ScoredJobs>> {
  for (;;) {
    const rollout = await runRollout(services, at, job, progress.rollout);
    progress.sampling.delete(job);
    const { trajectories, samples, responseTokens } = rollout.output;
    const sampled: MadeBy = { fact: trajectories, request: job, jobId: rollout.jobId };
    const request = rewardJob(at.context, job, { trajectories, jobId: rollout.jobId }, again);
    try {
      const onProgress: WaitOptions['onProgress'] = (done, queued) => {
        if (progress.sampling.size === 0) progress.reward(rollout.jobId, done?.done ?? 0, done?.total ?? 0, queued);
      };
      const reward = await services.recompute.run(request, { signal: at.signal, onProgress });
      const { scores, failed } = reward.output;
      return {
        trajectories,
        scores,
        samples,
        responseTokens,
        failed,
        rollout: endedJob('rollout', rollout),
        reward: endedJob('reward', reward),
        madeBy: [sampled, { fact: scores, request, jobId: reward.jobId }],
      };
    } catch (error) {
      if (!services.recompute.lost(error, [sampled])) throw error;
    }
  }
}

/**
 * Pauses the run when too many samples failed. After each resume the failed samples are scored again, because the
 * scorer may have been fixed. Returns the number of these pauses.
 */
async function timesToScoreAgain(
  { ports }: StageServices,
  { context, head }: At,
  scored: readonly ScoredRollout[],
): Promise<number> {
  if (!tooManyFailed(context, scored)) return 0;
  return ports.pausesFor(context.log, 'TooManyFailedSamples', `iteration ${head.position + 1}`);
}

function tooManyFailed({ recipe }: RunContext, scored: readonly ScoredRollout[]): boolean {
  const jobs = scored.flatMap(jobsOf);
  const failed = jobs.reduce((sum, one) => sum + one.failed, 0);
  const samples = jobs.reduce((sum, one) => sum + one.samples, 0);
  return failed > recipe.reward.max_failed_fraction * samples;
}
