/** Rollouts and rewards of a position: dispatched, waited for, joined when others wait too. */
import { damage } from '../core/damage.ts';
import { TerminalError } from '../core/errors.ts';
import type { Digest } from '../core/ids.ts';
import { keys } from '../core/records/keys.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { RolloutOutput } from '../core/wire/jobs.ts';
import { outOfDateType } from '../core/wire/workflow.ts';
import type { JobRequest, JobResult, WaitOptions } from '../infra/nats/dispatcher.ts';
import type { Head, LogPosition } from '../infra/store/run-log.ts';
import { liveNote, needHead } from './head.ts';
import type { ActivityPorts } from './ports.ts';
import { rewardJob, rolloutJobs } from './rollout-jobs.ts';
import { rolloutOrParts } from './poison.ts';
import type { MadeBy, Recompute } from './recompute.ts';
import type { Purpose } from './rollout-jobs.ts';
import type { RunContext, RunContexts, RunRef } from './run-context.ts';
import { spanOf } from './spans.ts';
import type { Span } from './spans.ts';

/** A rollout with its scores. */
export interface ScoredRollout {
  readonly trajectories: string;
  readonly scores: string;
  readonly jobs: readonly string[];
  readonly rollout: RolloutOutput;
  /** Samples without a score. */
  readonly failed: number;
  readonly timings: ResultRecord['timings'];
  readonly spans: { readonly rollout: Span | undefined; readonly reward: Span | undefined };
  /** What the next stage reads of it, and who made it. */
  readonly facts: readonly MadeBy[];
}

export interface Sampling {
  rollouts(context: RunContext, head: Head, purpose: Purpose, signal: AbortSignal): Promise<JobResult<'rollout'>[]>;
  /** What `use` makes of the scored rollouts of a position. Those of them that it finds lost are made again, and it is asked anew. */
  scored<T>(
    context: RunContext,
    head: Head,
    purpose: Purpose,
    signal: AbortSignal,
    use: (scored: readonly ScoredRollout[]) => Promise<T>,
  ): Promise<T>;
}

type Told = (jobId: string, done: number, total: number, queued: string | undefined) => void;

/** What those who watch hear of a position's samples. While responses are sampled they hear nothing of the scores. */
interface ScoringWatch {
  readonly rollout: Told;
  readonly reward: Told;
  /** Jobs whose responses are not there yet. */
  readonly sampling: Set<JobRequest<'rollout'>>;
}

export function sampling(ports: ActivityPorts, recompute: Recompute): Sampling {
  /** Weights that every worker can have, as far as is known, by run. */
  const ensured = new Map<string, Digest>();

  /** Tells those who watch the totals over the jobs of a stage. */
  function watch(runId: string, stage: string, position: number, jobs: number, unit = 'tokens'): Told {
    const notes = new Map<string, { done: number; total: number }>();
    return (jobId, done, total, queued) => {
      notes.set(jobId, { done, total });
      const sum = [...notes.values()].reduce((a, b) => ({ done: a.done + b.done, total: a.total + b.total }), {
        done: 0,
        total: 0,
      });
      const share = notes.size === 0 ? 0 : sum.total * (jobs / notes.size);
      ports.live(runId, liveNote(stage, position + 1, { done: sum.done, total: share, note: unit }, queued));
    };
  }

  async function runRollout(
    context: RunContext,
    head: Head,
    job: JobRequest<'rollout'>,
    signal: AbortSignal,
    told: Told,
  ): Promise<JobResult<'rollout'>> {
    const failed = new AbortController();
    const supply = weightsSupply(
      (again) => publishWeights(context, head, signal, again),
      (error) => failed.abort(error),
    );
    const options: WaitOptions = {
      signal: AbortSignal.any([signal, failed.signal]),
      onProgress: (progress, queued) => {
        told(job.input.draws[0]?.draw.toString() ?? '', progress?.done ?? 0, progress?.total ?? 0, queued);
        supply(queued);
      },
    };
    const dispatch = (part: JobRequest<'rollout'>) => ports.dispatcher.run(part, options);
    return recompute.runBy(job, (current) =>
      rolloutOrParts({ ports, deterministic: context.recipe.deterministic === true, dispatch }, current),
    );
  }

  /** A rollout worker outside the trainer's process needs them; any trainer can write them. */
  async function publishWeights(context: RunContext, head: Head, signal: AbortSignal, again = false): Promise<void> {
    const request: JobRequest<'weights'> = {
      stage: 'weights',
      runId: context.log.runId,
      at: { term: head.term, iteration: head.position },
      store: context.log.store,
      profile: head.termRecord.profile.id,
      input: {
        weights: head.weightsDigest,
        state: head.stateDigest,
        model: context.inputs.model,
        profile: head.termRecord.profile,
      },
    };
    const { jobId } = await recompute.run(request, { signal });
    if (!again) return;
    const because = `weights ${head.weightsDigest.slice(0, 12)} are damaged`;
    if (!recompute.again(request, jobId, because))
      throw damage('DamagedBlob', keys.weights(context.log.runId, head.weightsDigest), because);
    await recompute.run(request, { signal });
  }

  async function scoredRollout(
    context: RunContext,
    head: Head,
    job: JobRequest<'rollout'>,
    again: number,
    signal: AbortSignal,
    told: ScoringWatch,
  ): Promise<ScoredRollout> {
    for (;;) {
      const rollout = await runRollout(context, head, job, signal, told.rollout);
      told.sampling.delete(job);
      const { trajectories } = rollout.output;
      const made: MadeBy = { fact: trajectories, request: job, jobId: rollout.jobId };
      const rewards = rewardJob(context, job, trajectories, again);
      try {
        const onProgress: WaitOptions['onProgress'] = (progress, queued) => {
          if (told.sampling.size === 0) told.reward(rollout.jobId, progress?.done ?? 0, progress?.total ?? 0, queued);
        };
        const reward = await recompute.run(rewards, { signal, onProgress });
        const { scores, failed } = reward.output;
        return {
          trajectories,
          scores,
          jobs: [rollout.jobId, reward.jobId],
          rollout: rollout.output,
          failed,
          timings: addTimings(rollout.timings, reward.timings),
          spans: { rollout: spanOf('rollout', rollout), reward: spanOf('reward', reward) },
          facts: [made, { fact: scores, request: rewards, jobId: reward.jobId }],
        };
      } catch (error) {
        if (!recompute.lost(error, [made])) throw error;
      }
    }
  }

  /** Whoever asks for responses first sees to it: rollout and reward are started together. */
  async function ensureWeights(context: RunContext, head: Head, signal: AbortSignal): Promise<void> {
    if (head.position === 0 || ensured.get(context.log.runId) === head.weightsDigest) return;
    const workers = await ports.listWorkers();
    const outside = workers.filter((worker) => worker.roles.includes('rollout') && worker.lease !== context.log.runId);
    if (outside.length > 0) await publishWeights(context, head, signal);
    ensured.set(context.log.runId, head.weightsDigest);
  }

  return {
    async rollouts(context, head, purpose, signal) {
      const jobs = rolloutJobs(context, head, head.termRecord.profile, purpose);
      const told = watch(context.log.runId, purpose === 'train' ? 'rollout' : 'evaluate', head.position, jobs.length);
      await ensureWeights(context, head, signal);
      return Promise.all(jobs.map((job) => runRollout(context, head, job, signal, told)));
    },

    async scored(context, head, purpose, signal, use) {
      const jobs = rolloutJobs(context, head, head.termRecord.profile, purpose);
      const stage = (name: string) => (purpose === 'train' ? name : 'evaluate');
      const told: ScoringWatch = {
        sampling: new Set(jobs),
        rollout: watch(context.log.runId, stage('rollout'), head.position, jobs.length),
        reward: watch(context.log.runId, stage('reward'), head.position, jobs.length, 'samples'),
      };
      await ensureWeights(context, head, signal);
      const score = (job: JobRequest<'rollout'>, again: number) =>
        scoredRollout(context, head, job, again, signal, told);
      for (;;) {
        const first = await Promise.all(jobs.map((job) => score(job, 0)));
        const again =
          purpose === 'train' && tooManyFailed(context, first)
            ? await ports.pausesFor(context.log, 'TooManyFailedSamples', `iteration ${head.position + 1}`)
            : 0;
        const scored =
          again === 0
            ? first
            : await Promise.all(jobs.map((job, i) => (first[i]?.failed === 0 ? first[i] : score(job, again))));
        try {
          return await use(scored);
        } catch (error) {
          if (
            !recompute.lost(
              error,
              scored.flatMap(({ facts }) => facts),
            )
          )
            throw error;
        }
      }
    },
  };
}

/** When more samples than this fail, the run pauses. The user may fix the scorer before resuming the run. */
function tooManyFailed({ recipe }: RunContext, scored: readonly ScoredRollout[]): boolean {
  const failed = scored.reduce((sum, part) => sum + part.failed, 0);
  return failed > recipe.reward.max_failed_fraction * scored.reduce((sum, part) => sum + part.rollout.samples, 0);
}

/**
 * Told why a rollout waits: has the weights written when a worker lacks them, and written anew when it still lacks them
 * after that, or found them damaged. A worker says why once; what stands there until another one has tried is old.
 */
function weightsSupply(
  publish: (again: boolean) => Promise<void>,
  failed: (error: unknown) => void,
): (queued: string | undefined) => void {
  let state: 'new' | 'publishing' | 'published' | 'tried' = 'new';
  return (queued) => {
    const [, lack] = /^Weights(Missing|Damaged)/.exec(queued ?? '') ?? [];
    if (state === 'published' && lack === undefined) state = 'tried';
    if (lack === undefined || state === 'publishing' || state === 'published') return;
    const again = lack === 'Damaged' || state === 'tried';
    state = 'publishing';
    publish(again).then(() => void (state = 'published'), failed);
  };
}

export function addTimings(...all: readonly ResultRecord['timings'][]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const timings of all)
    for (const [name, value] of Object.entries(timings)) sums[name] = (sums[name] ?? 0) + Number(value);
  return sums;
}

/**
 * The head that a stage works on; refuses when it is not ours to go on with. A workflow that was rolled back with Temporal's database, or whose process slept while
 * others went on, may believe the log to be shorter than it is: what it asks for would be another iteration's.
 * @throws TerminalError `OutOfDate`. With `orCommitted` the position may be one on, as the stage itself leaves it.
 */
export async function headOf(
  contexts: RunContexts,
  ref: RunRef,
  orCommitted = false,
): Promise<{ context: RunContext; head: Head }> {
  const { context, head: found } = await contexts.head(ref);
  const head = needHead(found, ref.runId);
  const committed = orCommitted && head.pending === undefined && head.position === (ref.position ?? 0) + 1;
  if (ref.position !== undefined && head.position !== ref.position && !committed) {
    throw new TerminalError(
      outOfDateType,
      `The log ends at position ${head.position}, the workflow is at ${ref.position}`,
      { where: ref.runId },
    );
  }
  return { context, head };
}

export type { LogPosition };
