/** Rollouts and rewards of a position: dispatched, waited for, joined when others wait too. */
import type { Digest } from '../core/ids.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { RolloutOutput } from '../core/wire/jobs.ts';
import type { JobRequest, JobResult, WaitOptions } from '../infra/nats/dispatcher.ts';
import type { Head, LogPosition } from '../infra/store/run-log.ts';
import { liveNote, needHead } from './head.ts';
import type { ActivityPorts } from './ports.ts';
import { rewardJob, rolloutJobs } from './rollout-jobs.ts';
import { rolloutOrParts } from './suspects.ts';
import type { Purpose } from './rollout-jobs.ts';
import type { RunContext, RunContexts, RunRef } from './run-context.ts';

/** A rollout with its scores. */
export interface ScoredRollout {
  readonly trajectories: string;
  readonly scores: string;
  readonly jobs: readonly string[];
  readonly rollout: RolloutOutput;
  /** Samples without a score. */
  readonly failed: number;
  readonly timings: ResultRecord['timings'];
}

export interface Sampling {
  rollouts(context: RunContext, head: Head, purpose: Purpose, signal: AbortSignal): Promise<JobResult<'rollout'>[]>;
  scored(context: RunContext, head: Head, purpose: Purpose, signal: AbortSignal): Promise<ScoredRollout[]>;
}

export function sampling(ports: ActivityPorts): Sampling {
  /** Weights that every worker can have, as far as is known, by run. */
  const ensured = new Map<string, Digest>();

  /** Totals over the jobs of a stage, for whoever watches. */
  function watch(runId: string, stage: string, position: number, jobs: number) {
    const notes = new Map<string, { done: number; total: number }>();
    return (jobId: string, done: number, total: number, queued: string | undefined) => {
      notes.set(jobId, { done, total });
      const sum = [...notes.values()].reduce((a, b) => ({ done: a.done + b.done, total: a.total + b.total }), { done: 0, total: 0 });
      const share = notes.size === 0 ? 0 : sum.total * (jobs / notes.size);
      ports.live(runId, liveNote(stage, position + 1, { done: sum.done, total: share, note: 'tokens' }, queued));
    };
  }

  async function runRollout(context: RunContext, head: Head, job: JobRequest<'rollout'>, signal: AbortSignal, told: ReturnType<typeof watch>): Promise<JobResult<'rollout'>> {
    let published = false;
    const options: WaitOptions = {
      signal,
      onProgress: (progress, queued) => {
        told(job.input.draws[0]?.draw.toString() ?? '', progress?.done ?? 0, progress?.total ?? 0, queued);
        if (queued?.startsWith('WeightsMissing') && !published) {
          published = true;
          publishWeights(context, head, signal).catch((error: unknown) => ports.say(context.log.runId, 'warn', `publishing weights: ${String(error)}`));
        }
      },
    };
    return rolloutOrParts({ ports, deterministic: context.recipe.deterministic === true, dispatch: (part) => ports.dispatcher.run(part, options) }, job);
  }

  /** A rollout worker outside the trainer's process needs them; any trainer can write them. */
  async function publishWeights(context: RunContext, head: Head, signal: AbortSignal): Promise<void> {
    await ports.dispatcher.run(
      {
        stage: 'weights',
        runId: context.log.runId,
        at: { term: head.term, iteration: head.position },
        store: context.log.store,
        profile: head.termRecord.profile.id,
        input: { weights: head.weightsDigest, state: head.stateDigest, model: context.inputs.model, profile: head.termRecord.profile },
      },
      { signal },
    );
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

    async scored(context, head, purpose, signal) {
      const jobs = rolloutJobs(context, head, head.termRecord.profile, purpose);
      const told = watch(context.log.runId, purpose === 'train' ? 'rollout' : 'evaluate', head.position, jobs.length);
      await ensureWeights(context, head, signal);
      const score = async (job: JobRequest<'rollout'>, again: number): Promise<ScoredRollout> => {
        const rollout = await runRollout(context, head, job, signal, told);
        const reward = await ports.dispatcher.run(rewardJob(context, job, rollout.output.trajectories, again), { signal });
        return {
          trajectories: rollout.output.trajectories,
          scores: reward.output.scores,
          jobs: [rollout.jobId, reward.jobId],
          rollout: rollout.output,
          failed: reward.output.failed,
          timings: addTimings(rollout.timings, reward.timings),
        };
      };
      const scored = await Promise.all(jobs.map((job) => score(job, 0)));
      const again = purpose === 'train' && tooManyFailed(context, scored) ? await ports.pausesFor(context.log, 'TooManyFailedSamples', `iteration ${head.position + 1}`) : 0;
      return again === 0 ? scored : Promise.all(jobs.map((job, i) => (scored[i]?.failed === 0 ? scored[i] : score(job, again))));
    },
  };
}

/** Beyond this the run pauses; when its owner lets it go on, the scorer may have been mended. */
function tooManyFailed({ recipe }: RunContext, scored: readonly ScoredRollout[]): boolean {
  const failed = scored.reduce((sum, part) => sum + part.failed, 0);
  return failed > recipe.reward.max_failed_fraction * scored.reduce((sum, part) => sum + part.rollout.samples, 0);
}

export function addTimings(...all: readonly ResultRecord['timings'][]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const timings of all) for (const [name, value] of Object.entries(timings)) sums[name] = (sums[name] ?? 0) + Number(value);
  return sums;
}

/** The head that a stage works on; refuses when it is not ours to go on with. */
export async function headOf(contexts: RunContexts, ref: RunRef): Promise<{ context: RunContext; head: Head }> {
  const { context, head } = await contexts.head(ref);
  return { context, head: needHead(head, ref.runId) };
}

export type { LogPosition };
