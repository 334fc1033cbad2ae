/**
 * Poison jobs: jobs that crash the workers they run on. A poison rollout is split in halves, and each half runs alone
 * on its worker, until the one sample at fault is found. A crashed job has recorded nothing, so the halves sample from
 * the first token. A sampler whose random bits are counters gives the other samples the same responses, to the bit, and
 * finds the same sample at fault. One that draws its own bits gives them other responses of the same distribution, and
 * may crash at another sample, or at none: so a run with `deterministic: true` does not start with it. When a batch
 * crashes every trainer, the run pauses and its user decides.
 */
import { at } from '../../core/at.ts';
import { PauseError, PetrelError } from '../../core/errors.ts';
import type { RolloutInput } from '../../core/wire/jobs/index.ts';
import type { JobRequest, JobResult } from '../../core/ports/jobs.ts';
import {
  decodeTrajectories,
  encodeTrajectories,
  joinTrajectories,
  singleTurn,
  stopReasons,
} from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { recordWriter } from '../term/record-writer.ts';

export interface PoisonPorts {
  readonly ports: ActivityPorts;
  /** In a deterministic run a crash must not change the batch, so a poison sample pauses the run. */
  readonly deterministic: boolean;
  /** Runs one job to its result. */
  readonly dispatch: (job: JobRequest<'rollout'>) => Promise<JobResult<'rollout'>>;
}

/**
 * The job's result; splits the job when it crashes workers. @throws PauseError `SampleConvicted` in a deterministic
 * run.
 */
export async function rolloutOrParts(ports: PoisonPorts, job: JobRequest<'rollout'>): Promise<JobResult<'rollout'>> {
  const halves = halvesOf(job.input);
  try {
    return await ports.dispatch({ ...job, divisible: halves !== undefined });
  } catch (error) {
    if (!isPoison(error)) throw error;
    if (halves === undefined) return poisonSample(ports, job, error);
    ports.ports.say(
      job.runId,
      'warn',
      `${nameOf(job.input)} crashed a worker while it ran alone; its halves now run one after the other`,
    );
  }
  const parts: JobResult<'rollout'>[] = [];
  // One after the other, because the poison half would crash the worker of the other half.
  for (const input of halves)
    parts.push(await rolloutOrParts(ports, { ...job, input, quarantined: true, isNew: false }));
  return join(ports, job, parts);
}

/**
 * Turns the error of an update that is a poison job into the pause that offers to skip its batch. Other errors are
 * returned unchanged.
 */
export function poisonBatch(error: unknown, runId: string, iteration: number): unknown {
  if (!isPoison(error)) return error;
  return new PauseError(
    'BatchConvicted',
    `the batch of iteration ${iteration} crashed every trainer that applied it; ${error.message}`,
    {
      hint: `petrel resume ${runId} --skip continues without this batch (the run records that); petrel resume ${runId} tries it again`,
      where: error.where ?? runId,
    },
  );
}

function isPoison(error: unknown): error is PetrelError {
  return error instanceof PetrelError && error.code === 'JobConvicted';
}

/** Splits a rollout by draws, then by the samples of one draw; undefined for a single sample. */
function halvesOf(input: RolloutInput): readonly [RolloutInput, RolloutInput] | undefined {
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
  { ports }: PoisonPorts,
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
  return settle(ports, job, joinTrajectories(decoded), timings);
}

/**
 * The result for a poison sample: an empty response, which fails scoring and is excluded from its group's statistics.
 */
async function poisonSample(
  { ports, deterministic }: PoisonPorts,
  job: JobRequest<'rollout'>,
  error: PetrelError,
): Promise<JobResult<'rollout'>> {
  const { input } = job;
  if (deterministic) {
    throw new PauseError('SampleConvicted', `${nameOf(input)} crashes every worker that samples it; ${error.message}`, {
      hint: 'petrel resume tries again; with `deterministic: replay` in the recipe such a sample counts as failed',
      where: error.where ?? job.runId,
    });
  }
  ports.say(job.runId, 'warn', `${nameOf(input)} is poison: it crashes every worker that samples it`);
  const none = new Int32Array(0);
  return settle(
    ports,
    job,
    {
      weightsDigest: input.weights,
      drawOffsets_G1: Int32Array.of(0, 1),
      draw_S: Int32Array.of(at(input.draws, 0).draw),
      row_S: Int32Array.of(at(input.draws, 0).row),
      promptTokens: none,
      promptOffsets_P1: Int32Array.of(0, 0),
      prompt_S: Int32Array.of(0),
      responseTokens_T: none,
      responseOffsets_S1: Int32Array.of(0, 0),
      logProbs_T: new Float32Array(0),
      samplingLogProbs_T: new Float32Array(0),
      ...singleTurn(Int32Array.of(0, 0), Int32Array.of(input.firstSample ?? 0), job.at.iteration),
      stopReason_S: Uint8Array.of(stopReasons.poison),
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
    samples: trajectories.draw_S.length,
    promptTokens: trajectories.promptTokens.length,
    responseTokens: trajectories.responseTokens_T.length,
  };
  return ports.dispatcher.settle(job, output, timings, recordWriter(ports));
}

/** The job's samples, as a message names them. */
function nameOf({ draws, samplesPerDraw, firstSample = 0 }: RolloutInput): string {
  const [first] = draws;
  if (draws.length > 1) return `the rollout of draws ${first?.draw} to ${draws.at(-1)?.draw}`;
  const samples =
    samplesPerDraw === 1 ? `sample ${firstSample}` : `samples ${firstSample} to ${firstSample + samplesPerDraw - 1}`;
  return `${samples} of draw ${first?.draw} (row ${first?.row})`;
}
