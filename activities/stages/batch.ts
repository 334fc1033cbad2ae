/** The batch of an iteration: the advantage job makes it, and makes it again when its tensors are lost. */
import { samplesResponses } from '../../core/run-kinds.ts';
import { isDamage, isLostBlob, logHole } from '../../core/records/damage.ts';
import { errorToJson } from '../../core/errors.ts';
import { blobsOfBatch } from '../../core/records/batch-blobs.ts';
import { keys } from '../../core/records/keys.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { JobRequest, JobResult, WaitOptions } from '../../core/ports/jobs.ts';
import type { Stage } from '../../core/wire/jobs/index.ts';
import { readsValues } from '../../core/recipe/index.ts';
import { advantageJob, valuesJob } from './advantage-job.ts';
import { stateOfPart } from '../term/parts.ts';
import { partsOf } from '../settings.ts';
import { liveNote } from '../live-note.ts';
import type { At } from '../sampling/rollouts.ts';
import { withScoredRollouts } from '../sampling/scored-rollouts.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import type { StageServices } from '../services.ts';

export interface MadeBatch extends JobResult<'advantage'> {
  readonly scored: readonly ScoredRollout[];
  readonly request: JobRequest<'advantage'>;
}

/** `known`: the scored rollouts from the earlier stages. Without them they are found by their jobs. */
export async function makeBatch(services: StageServices, at: At, known?: readonly ScoredRollout[]): Promise<MadeBatch> {
  if (!samplesResponses(at.context.recipe.kind)) return batchOf(services, at, []);
  const byJobs = () => withScoredRollouts(services, at, 'train', (scored) => batchOf(services, at, scored));
  if (known === undefined) return byJobs();
  try {
    return await batchOf(services, at, known);
  } catch (error) {
    // One of their blobs is lost; the rollouts found by their jobs can recompute it.
    if (isDamage(error)) return byJobs();
    throw error;
  }
}

async function batchOf(services: StageServices, at: At, scored: readonly ScoredRollout[]): Promise<MadeBatch> {
  const { ports, recompute } = services;
  const { context, head, signal } = at;
  const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
    ports.live(context.log.runId, liveNote('advantage', head.position + 1, progress, queued));
  const made = async (request: JobRequest<'advantage'>) => ({
    scored,
    request,
    ...(await recompute.run(request, { signal, onProgress })),
  });
  const [main, critic] = partsOf(context.recipe);
  if (critic === undefined) return made(advantageJob(context, head, scored));
  const ofMain = { partState: stateOfPart(ports, head, main) };
  const request = advantageJob(context, head, scored, ofMain);
  if (!readsValues(context.recipe)) return made(request);
  const forValues = valuesJob(ports, head, request, critic);
  for (;;) {
    const { jobId, output, timings } = await recompute.run(forValues, { signal, onProgress });
    const { values } = output;
    try {
      const batch = await made(advantageJob(context, head, scored, { ...ofMain, values }));
      return { ...batch, timings: { ...batch.timings, ...timesOfValues(timings, batch.timings) } };
    } catch (error) {
      if (!recompute.lost(error, [{ fact: values, request: forValues, jobId }])) throw error;
    }
  }
}

/** Seconds for making the values and for reading them. */
function timesOfValues(...of: readonly JobResult<Stage>['timings'][]): Record<string, number> {
  const name = 'timing_s/values';
  return { [name]: of.reduce((sum, timings) => sum + Number(timings[name] ?? 0), 0) };
}

/**
 * Does work that reads a committed batch. When the batch's tensors are lost, they are recomputed, and must have the
 * digest that the record names. @throws PauseError `LogHole` when they have another one.
 */
export async function withBatch<T>(
  services: StageServices,
  at: At,
  record: BatchRecord,
  work: () => Promise<T>,
): Promise<T> {
  const { runId } = at.context.log;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      // Another arithmetic made the samples of an adopted batch, so they cannot be recomputed.
      if (record.adopted !== undefined || !blobsOfBatch(record).some((digest) => isLostBlob(error, runId, digest)))
        throw error;
      const { request, jobId } = await makeBatch(services, at);
      if (!services.recompute.again(request, jobId, String(error))) throw error;
      const again = (await makeBatch(services, at)).output;
      if (blobsOfBatch(again).join() !== blobsOfBatch(record).join())
        throw logHole(runId, at.head.position, keys.blob(runId, record.tensors), errorToJson(error).message);
    }
  }
}
