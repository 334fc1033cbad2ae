/**
 * Jobs that end the workers they run on. A rollout is cut in halves, each run with nothing beside it, down to the one
 * sample at fault; its neighbours keep their responses, the same to the bit. A batch that ends every trainer is for its
 * owner to decide.
 */
import { PauseError, PetrelError } from '../core/errors.ts';
import type { RolloutInput } from '../core/wire/jobs.ts';
import type { JobRequest, JobResult } from '../infra/nats/dispatcher.ts';
import { decodeTrajectories, encodeTrajectories, joinTrajectories, stopReasons } from '../models/trajectories.ts';
import type { Trajectories } from '../models/trajectories.ts';
import type { ActivityPorts } from './ports.ts';
import { writerOf } from './run-context.ts';

export interface Suspects {
  readonly ports: ActivityPorts;
  /** A worker's death is never an outcome: a convicted sample pauses the run. */
  readonly deterministic: boolean;
  /** Runs one job to its result. */
  readonly dispatch: (job: JobRequest<'rollout'>) => Promise<JobResult<'rollout'>>;
}

/** The job's result, whatever it takes. @throws PauseError `SampleConvicted` in a deterministic run. */
export async function rolloutOrParts(suspects: Suspects, job: JobRequest<'rollout'>): Promise<JobResult<'rollout'>> {
  const halves = halvesOf(job.input);
  try {
    return await suspects.dispatch({ ...job, divisible: halves !== undefined });
  } catch (error) {
    if (!isConviction(error)) throw error;
    if (halves === undefined) return convict(suspects, job, error);
    suspects.ports.say(
      job.runId,
      'warn',
      `${nameOf(job.input)} ended a worker while alone: its halves are tried one by one`,
    );
  }
  const parts: JobResult<'rollout'>[] = [];
  // One after the other: the guilty half must not take the other one's worker with it.
  for (const input of halves) parts.push(await rolloutOrParts(suspects, { ...job, input, suspect: true }));
  return join(suspects, job, parts);
}

/** Turns the conviction of an update into a pause that offers to skip its batch. */
export function batchConvicted(error: unknown, runId: string, iteration: number): unknown {
  if (!isConviction(error)) return error;
  return new PauseError(
    'BatchConvicted',
    `the batch of iteration ${iteration} ended every trainer that applied it; ${error.message}`,
    {
      hint: `petrel resume ${runId} --skip goes on without it (recorded); petrel resume ${runId} tries again`,
      where: error.where ?? runId,
    },
  );
}

function isConviction(error: unknown): error is PetrelError {
  return error instanceof PetrelError && error.code === 'JobConvicted';
}

/** By draws, then by the samples of one draw; undefined for a single sample. */
export function halvesOf(input: RolloutInput): readonly [RolloutInput, RolloutInput] | undefined {
  const { draws, samplesPerDraw: n, firstSample = 0 } = input;
  const cut = Math.ceil((draws.length > 1 ? draws.length : n) / 2);
  if (draws.length > 1)
    return [
      { ...input, draws: draws.slice(0, cut) },
      { ...input, draws: draws.slice(cut) },
    ];
  if (n > 1)
    return [
      { ...input, samplesPerDraw: cut },
      { ...input, samplesPerDraw: n - cut, firstSample: firstSample + cut },
    ];
  return undefined;
}

async function join(
  { ports }: Suspects,
  job: JobRequest<'rollout'>,
  parts: readonly JobResult<'rollout'>[],
): Promise<JobResult<'rollout'>> {
  const decoded = await Promise.all(
    parts.map(async ({ output }) =>
      decodeTrajectories(await ports.getBlob(job.store, job.runId, output.trajectories), output.trajectories),
    ),
  );
  const timings = {
    'timing_s/rollout': parts.reduce((sum, part) => sum + Number(part.timings['timing_s/rollout'] ?? 0), 0),
  };
  return settle(ports, job, joinTrajectories(decoded, job.input.samplesPerDraw), timings);
}

/** A sample without a response: it fails to be scored, and leaves the statistics of its group. */
async function convict(
  { ports, deterministic }: Suspects,
  job: JobRequest<'rollout'>,
  error: PetrelError,
): Promise<JobResult<'rollout'>> {
  const { input } = job;
  if (deterministic) {
    throw new PauseError('SampleConvicted', `${nameOf(input)} ends every worker that samples it; ${error.message}`, {
      hint: 'petrel resume tries again; with deterministic: replay such a sample would count as failed',
      where: error.where ?? job.runId,
    });
  }
  ports.say(job.runId, 'warn', `${nameOf(input)} is convicted: it ends every worker that samples it`);
  const none = new Int32Array(0);
  return settle(
    ports,
    job,
    {
      weightsDigest: input.weights,
      samplesPerDraw: 1,
      draw_B: Int32Array.of(input.draws[0]?.draw ?? -1),
      row_B: Int32Array.of(input.draws[0]?.row ?? -1),
      promptTokens: none,
      promptOffsets_D1: Int32Array.of(0, 0),
      responseTokens_R: none,
      responseOffsets_B1: Int32Array.of(0, 0),
      logProbs_R: new Float32Array(0),
      samplingLogProbs_R: new Float32Array(0),
      stopReason_B: Uint8Array.of(stopReasons.convicted),
    },
    {},
  );
}

async function settle(
  ports: ActivityPorts,
  job: JobRequest<'rollout'>,
  trajectories: Trajectories,
  timings: Record<string, number>,
): Promise<JobResult<'rollout'>> {
  const output = {
    trajectories: await ports.putBlob(job.store, job.runId, encodeTrajectories(trajectories)),
    samples: trajectories.draw_B.length,
    promptTokens: trajectories.promptTokens.length,
    responseTokens: trajectories.responseTokens_R.length,
  };
  return ports.dispatcher.settle(job, output, timings, writerOf(ports));
}

/** For people. */
function nameOf({ draws, samplesPerDraw, firstSample = 0 }: RolloutInput): string {
  const [first] = draws;
  if (draws.length > 1) return `the rollout of draws ${first?.draw} to ${draws.at(-1)?.draw}`;
  const samples =
    samplesPerDraw === 1 ? `sample ${firstSample}` : `samples ${firstSample} to ${firstSample + samplesPerDraw - 1}`;
  return `${samples} of draw ${first?.draw} (row ${first?.row})`;
}
