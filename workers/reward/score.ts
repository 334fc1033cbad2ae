/** The reward stage: text of every sample to its scorer, in processes of their own; what fails is a failed sample. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PauseError } from '../../core/errors.ts';
import type { RewardInput, RewardOutput, ScoreTable } from '../../core/wire/jobs.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Store } from '../../core/ports.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { getBlob, putJsonBlob } from '../../infra/store/blobs.ts';
import { readDatasetFiles } from '../../infra/store/datasets.ts';
import { modelFolder } from '../../infra/store/model-facts.ts';
import { decodeDataset, rowsFile, tokensFile } from '../../models/dataset-fact.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import { tokenizerOf } from '../tokenizers.ts';
import { withSecrets } from './secrets.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import { stopReasons } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import { createScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScoreFailure, ScoreOutcome, ScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerInput } from '../../rewards/types.ts';

/** Samples decoded or handed over before the event loop gets a turn. */
const chunk = 64;
/** Scorers whose processes are kept ready, the last used ones. */
const keptHosts = 4;
/** Failures that say more about the machine than about the sample. */
const accidents: ReadonlySet<string> = new Set<ScoreFailure>(['timeout', 'memory', 'crashed']);

/** Keeps scorer processes and datasets between jobs. */
export class RewardRole {
  readonly #cache: string;
  /** In the order of their last use. */
  readonly #hosts = new Map<string, Promise<ScorerHost>>();
  /** Samples being scored, by host. */
  readonly #busy = new Map<ScorerHost, number>();
  readonly #datasets = new Map<string, Promise<DatasetFact>>();

  constructor(cache: string) {
    this.#cache = cache;
  }

  async score(
    store: Store,
    message: JobMessage,
    input: RewardInput,
    progress: (done: number, total: number) => void,
  ): Promise<RewardOutput> {
    const trajectories = decodeTrajectories(
      await getBlob(store, message.runId, input.trajectories),
      input.trajectories,
    );
    const dataset = await this.#dataset(store, input.dataset);
    const tokenizer = await tokenizerOf(await modelFolder(store, input.model, this.#cache, 'text'));
    const total = trajectories.row_B.length;
    const sample = (b: number) =>
      inputOf(trajectories, dataset, b, (ids) => tokenizer.decode(ids, { skipSpecial: true }));
    const outcomes = await this.#withHost(store, message.runId, input, async (host) => {
      const scored: ScoreOutcome[] = [];
      for (let start = 0; start < total; start += chunk) {
        scored.push(...(await scoreSampled(host, trajectories, range(start, Math.min(start + chunk, total)), sample)));
        progress(scored.length, total);
        faultPoint('score.chunk', { done: scored.length, runId: message.runId });
        await nextTurn();
      }
      return input.deterministic ? withoutAccidents(host, scored, sample) : scored;
    });
    const table: ScoreTable = { trajectories: input.trajectories, ...tabulate(outcomes) };
    return {
      scores: await putJsonBlob(store, message.runId, table),
      failed: outcomes.filter((outcome) => !outcome.ok).length,
    };
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.#hosts.values()].map((host) =>
        host.then(
          (ready) => ready.close(),
          () => undefined,
        ),
      ),
    );
  }

  #dataset(store: Store, digest: string): Promise<DatasetFact> {
    const known = this.#datasets.get(digest);
    if (known !== undefined) return known;
    const loading = readDatasetFiles(store, digest, [tokensFile, rowsFile]).then(([tokens, rows]) =>
      decodeDataset(tokens ?? new Uint8Array(), rows ?? new Uint8Array(), `datasets/${digest}`),
    );
    loading.catch(() => this.#datasets.delete(digest));
    this.#datasets.set(digest, loading);
    return loading;
  }

  async #withHost<T>(
    store: Store,
    runId: string,
    input: RewardInput,
    work: (host: ScorerHost) => Promise<T>,
  ): Promise<T> {
    const host = await this.#host(store, runId, input);
    this.#busy.set(host, (this.#busy.get(host) ?? 0) + 1);
    try {
      return await work(host);
    } finally {
      this.#busy.set(host, (this.#busy.get(host) ?? 1) - 1);
      await this.#closeOldHosts();
    }
  }

  /** One for all jobs that score alike, even when they come at once. */
  #host(store: Store, runId: string, input: RewardInput): Promise<ScorerHost> {
    const id = JSON.stringify([input.scorer, input.settings, input.timeoutMs, input.memoryMb, input.concurrency]);
    const host = this.#hosts.get(id) ?? this.#startHost(store, runId, input);
    this.#hosts.delete(id);
    this.#hosts.set(id, host);
    host.catch(() => this.#hosts.delete(id));
    return host;
  }

  async #startHost(store: Store, runId: string, input: RewardInput): Promise<ScorerHost> {
    const limits = { timeoutMs: input.timeoutMs, memoryMb: input.memoryMb, concurrency: input.concurrency };
    const { scorer } = input;
    const spec =
      scorer.type === 'builtin'
        ? { type: 'builtin' as const, name: scorer.name, settings: withSecrets(input.settings, process.env) }
        : {
            type: 'module' as const,
            path: await this.#module(store, runId, scorer.module, scorer.fileName),
            exportName: scorer.exportName,
            settings: withSecrets(input.settings, process.env),
          };
    const host = createScorerHost(spec, limits);
    await host.ready();
    return host;
  }

  async #closeOldHosts(): Promise<void> {
    for (const [id, starting] of [...this.#hosts].slice(0, -keptHosts)) {
      const host = await starting.catch(() => undefined);
      if (host === undefined || (this.#busy.get(host) ?? 0) > 0 || this.#hosts.get(id) !== starting) continue;
      this.#hosts.delete(id);
      this.#busy.delete(host);
      await host.close();
    }
  }

  /** A user's module as a file, from the store: the run's own copy, whatever became of the original. */
  async #module(store: Store, runId: string, digest: string, fileName: string): Promise<string> {
    const folder = join(this.#cache, 'modules', digest);
    await mkdir(folder, { recursive: true });
    const path = join(folder, fileName);
    // Another worker of this machine may be loading it.
    const partial = join(folder, `.${process.pid}-${fileName}`);
    await writeFile(partial, await getBlob(store, runId, digest));
    await rename(partial, path);
    return path;
  }
}

const noResponse: ScoreOutcome = {
  ok: false,
  code: 'no-response',
  reason: 'convicted: it ended every worker that sampled it',
};

/** What has no response has no score. */
async function scoreSampled(
  host: ScorerHost,
  { stopReason_B }: Trajectories,
  indices: readonly number[],
  sample: (b: number) => ScorerInput,
): Promise<ScoreOutcome[]> {
  const sampled = indices.filter((b) => stopReason_B[b] !== stopReasons.convicted);
  const outcomes = await host.score(sampled.map(sample));
  const byIndex = new Map(sampled.map((b, i) => [b, outcomes[i]]));
  return indices.map((b) => byIndex.get(b) ?? noResponse);
}

/**
 * Tries again, alone, what was no verdict on the sample. A deterministic run never trains on the outcome of an accident.
 * @throws PauseError `ScorerAccident` when it happens again.
 */
async function withoutAccidents(
  host: ScorerHost,
  outcomes: readonly ScoreOutcome[],
  sample: (b: number) => ScorerInput,
): Promise<ScoreOutcome[]> {
  const settled: ScoreOutcome[] = [];
  for (const [b, first] of outcomes.entries()) {
    const outcome = isAccident(first) ? ((await host.score([sample(b)]))[0] ?? first) : first;
    if (isAccident(outcome)) {
      throw new PauseError(
        'ScorerAccident',
        `the scorer gave no verdict on sample ${b}, twice: ${outcome.ok ? '' : outcome.reason}`,
        {
          hint: 'Raise reward.timeout or reward.memory_limit_mb, or write deterministic: replay: such samples then count as failed',
        },
      );
    }
    settled.push(outcome);
  }
  return settled;
}

const isAccident = (outcome: ScoreOutcome) => !outcome.ok && accidents.has(outcome.code);

function inputOf(t: Trajectories, dataset: DatasetFact, b: number, decode: (ids: number[]) => string): ScorerInput {
  const row = dataset.rows[t.row_B[b] ?? -1];
  const response = t.responseTokens_R.subarray(t.responseOffsets_B1[b], t.responseOffsets_B1[b + 1]);
  return {
    dataSource: row?.dataSource ?? '',
    solutionStr: decode([...response]),
    groundTruth: row?.groundTruth,
    extraInfo: row?.extraInfo,
  };
}

function tabulate(outcomes: readonly ScoreOutcome[]): Omit<ScoreTable, 'trajectories'> {
  const names = new Set(outcomes.flatMap((outcome) => (outcome.ok ? Object.keys(outcome.columns) : [])));
  const column = (name: string) =>
    outcomes.map((outcome) => {
      const value = outcome.ok ? outcome.columns[name] : undefined;
      return typeof value === 'number' && Number.isFinite(value)
        ? value
        : typeof value === 'boolean'
          ? Number(value)
          : null;
    });
  return {
    scores: outcomes.map((outcome) => (outcome.ok ? outcome.score : null)),
    reasons: outcomes.map((outcome) => (outcome.ok ? null : outcome.reason)),
    columns: Object.fromEntries([...names].sort().map((name) => [name, column(name)])),
  };
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i);
}
