/** The rollout jobs of a position. */
import { at } from '../../core/at.ts';
import type { JobRequest, JobResult, WaitOptions } from '../../core/ports/jobs.ts';
import type { Head } from '../../log/run/run-log.ts';
import { rolloutOrParts } from './poison.ts';
import { rolloutJobs } from './rollout-jobs.ts';
import type { RunContext } from '../term/run-context.ts';
import type { StageServices } from '../services.ts';
import { stageProgress, type OnJobProgress } from './progress.ts';
import { publishWhenLacking } from '../term/weights.ts';

/** The place where a stage works: the run, its head, and the signal that abandons the work. */
export interface At {
  readonly context: RunContext;
  readonly head: Head;
  readonly signal: AbortSignal;
}

/** The training rollouts of a position, in draw order. */
export async function trainingRollouts(services: StageServices, at: At): Promise<JobResult<'rollout'>[]> {
  const { context, head, signal } = at;
  const jobs = rolloutJobs(context, head, 'train');
  const onProgress = stageProgress(services.ports, {
    runId: context.log.runId,
    stage: 'rollout',
    iteration: head.position + 1,
    jobs: jobs.length,
    unit: 'tokens',
  });
  const haveWeights = await services.weights.beforeRollouts(context, head, signal);
  const results = jobs.map((job) => runRollout(services, at, job, onProgress));
  void Promise.race(results).then(haveWeights, () => {});
  return Promise.all(results);
}

/** One rollout job to its result. Publishes weights that its worker lacks, and splits a poison job. */
export function runRollout(
  { ports, recompute, weights }: StageServices,
  { context, head, signal }: At,
  job: JobRequest<'rollout'>,
  onProgress: OnJobProgress,
): Promise<JobResult<'rollout'>> {
  const failed = new AbortController();
  const publishIfLacking = publishWhenLacking(
    (again) => weights.publish(context, head, signal, again),
    (error) => failed.abort(error),
  );
  const options: WaitOptions = {
    signal: AbortSignal.any([signal, failed.signal]),
    onProgress: (progress, queued) => {
      onProgress(String(at(job.input.draws, 0).draw), progress?.done ?? 0, progress?.total ?? 0, queued);
      publishIfLacking(queued);
    },
  };
  const dispatch = (part: JobRequest<'rollout'>) => ports.dispatcher.run(part, options);
  return recompute.runBy(job, (current) =>
    rolloutOrParts({ ports, deterministic: context.recipe.deterministic === true, dispatch }, current),
  );
}
