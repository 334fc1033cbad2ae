/** The jobs of runs in one process: stages of the engine, and scores as the return values of a function. */
import { RetryableError } from '../core/errors.ts';
import type { Engines } from '../core/ports/engines.ts';
import { keys } from '../core/records/keys.ts';
import { formatOfResult, resultRecord } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { Store } from '../core/ports/store.ts';
import { jobInput } from '../core/wire/jobs/index.ts';
import type { RewardInput, RewardOutput, Stage } from '../core/wire/jobs/index.ts';
import { jobIdOf } from '../infra/nats/jobs/dispatcher.ts';
import type { JobRequest, JobResult } from '../core/ports/jobs.ts';
import { getBlob, putJsonBlob } from '../log/objects/blobs.ts';
import { readDataset } from '../log/inputs/datasets.ts';
import { modelFolder } from '../log/inputs/model-facts.ts';
import { decide } from '../log/objects/records.ts';
import { openTokenizerThread } from '../models/tokenizer-thread.ts';
import { decodeTrajectories } from '../models/trajectories.ts';
import { withComponents } from '../rewards/components.ts';
import type { ScoreOutcome } from '../rewards/host/host-types.ts';
import { toScored } from '../rewards/result.ts';
import type { ScorerInput, ScorerReturn } from '../rewards/types.ts';
import { OpenDatasets } from '../models/open-datasets.ts';
import { EngineHost } from '../workers/engine/host/host.ts';
import type { JobContext } from '../workers/engine/job/context.ts';
import { runStage } from '../workers/engine/stages/stages.ts';
import { inputsOf, scorerRows } from '../workers/reward/scoring.ts';
import { tabulate } from '../workers/reward/tabulate.ts';

/** A scorer of these tests. A sample for which it throws fails. */
export type ScoreFunction = (input: ScorerInput) => ScorerReturn;

export interface WorkerOptions {
  /** Engines of the worker. Default: the native one. */
  readonly engines?: readonly Engines[];
  /** Bytes of a batch's tensors above which it is in shards. Default: as in a worker. */
  readonly mostBatchBytes?: number;
}

export class InProcessWorker {
  readonly #cache: string;
  readonly #datasets = new OpenDatasets(readDataset);
  readonly #host: EngineHost;
  readonly #jobs = new Map<string, Promise<JobResult<Stage>>>();

  constructor(cache: string, { engines, mostBatchBytes }: WorkerOptions = {}) {
    this.#cache = cache;
    const ticks = new Int32Array(new SharedArrayBuffer(4));
    this.#host = new EngineHost({
      ...{ threads: 1, cache, onSaved: () => {}, ticks },
      ...(engines && { engines }),
      ...(mostBatchBytes !== undefined && { mostBatchBytes }),
    });
  }

  /** Runs a job once. Its result is a record, as a worker writes it. */
  run<S extends Stage>(request: JobRequest<S>, score: ScoreFunction): Promise<JobResult<S>> {
    const jobId = jobIdOf(request.stage, request.input);
    const id = `${request.runId} ${jobId}`;
    const known = this.#jobs.get(id);
    const result = known ?? this.#untilDone(request, jobId, score);
    this.#jobs.set(id, result);
    result.catch(() => this.#jobs.delete(id)); // the job comes again
    return result as Promise<JobResult<S>>;
  }

  /** Frees the models of a run that has ended. */
  async release(runId: string): Promise<void> {
    this.#jobs.clear();
    await this.#host.release(runId as JobContext['runId']);
  }

  /** Waits for the checkpoints that are still being written. */
  async close(): Promise<void> {
    await this.#host.saveLast(false);
  }

  /** A job comes again when its engine has ended, as the queue delivers it again. */
  async #untilDone<S extends Stage>(
    request: JobRequest<S>,
    jobId: string,
    score: ScoreFunction,
    tries = 5,
  ): Promise<JobResult<Stage>> {
    try {
      return await this.#work(request, jobId, score);
    } catch (error) {
      if (!(error instanceof RetryableError) || tries === 1) throw error;
      return this.#untilDone(request, jobId, score, tries - 1);
    }
  }

  async #work<S extends Stage>(request: JobRequest<S>, jobId: string, score: ScoreFunction): Promise<JobResult<Stage>> {
    const { stage, runId, store } = request;
    // As on the wire.
    const input: unknown = JSON.parse(JSON.stringify(request.input));
    jobInput(stage, input);
    const counts: Record<string, number> = {};
    const output =
      stage === 'reward'
        ? await this.#scored(store, runId, input as RewardInput, score)
        : await runStage(
            this.#host,
            { stage, input } as Parameters<typeof runStage>[1],
            contextOf(request, jobId, counts),
          );
    const record: ResultRecord = {
      format: formatOfResult(stage, output),
      jobId,
      stage,
      output: { ...output },
      timings: { [`timing_s/${stage}`]: 0, ...counts },
      writer: { process: 'test', at: new Date().toISOString() },
    };
    await decide(store, keys.result(runId, jobId), resultRecord, record, () => true);
    return { jobId, output, timings: record.timings };
  }

  async #scored(store: Store, runId: string, input: RewardInput, score: ScoreFunction): Promise<RewardOutput> {
    const trajectories = decodeTrajectories(await getBlob(store, runId, input.trajectories), input.trajectories);
    const rows = await scorerRows(await this.#datasets.open(store, input.dataset), trajectories.row_S);
    const tokenizer = await openTokenizerThread(await modelFolder(store, input.model, this.#cache, 'text'));
    const all = Array.from(trajectories.row_S, (_, b) => b);
    const given = await inputsOf({ trajectories, rows, tokenizer }, all);
    const returned = given.map((one) => outcomeOf(score, one));
    const outcomes = withComponents(returned, input.components ?? []);
    const sources = given.map(({ dataSource }) => dataSource);
    const columns = tabulate(outcomes, sources, trajectories.drawOffsets_G1);
    const table = { trajectories: input.trajectories, ...columns };
    const failed = outcomes.filter(({ ok }) => !ok).length;
    return { scores: await putJsonBlob(store, runId, table), failed };
  }
}

function outcomeOf(score: ScoreFunction, input: ScorerInput): ScoreOutcome {
  try {
    return { ok: true, ...toScored(score(input)) };
  } catch (error) {
    return { ok: false, code: 'threw', reason: `the scorer threw: ${(error as Error).message}` };
  }
}

function contextOf<S extends Stage>(
  { runId, at, store, publication, batch }: JobRequest<S>,
  jobId: string,
  counts: Record<string, number>,
): JobContext {
  return {
    runId: runId as JobContext['runId'],
    jobId: jobId as JobContext['jobId'],
    at,
    store: store.url,
    signal: new AbortController().signal,
    throwIfCancelled: () => {},
    progress: () => {},
    say: () => {},
    count: (name, value) => void (counts[name] = value),
    publication,
    batch,
    holders: [],
    ended: () => {},
    journal: {
      entries: [],
      incarnation: 'test',
      tickMs: 60_000,
      now: () => performance.now(),
      publish: () => {},
      onLost: () => () => {},
    },
  };
}
