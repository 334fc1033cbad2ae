/** The reward stage: text of every sample to its scorer, in processes of their own; what fails is a failed sample. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { writeFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { RewardInput, RewardOutput, ScoreTable } from '../../core/wire/jobs.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Store } from '../../core/ports.ts';
import { getBlob, putJsonBlob } from '../../infra/store/blobs.ts';
import { readDatasetFiles } from '../../infra/store/datasets.ts';
import { modelFolder } from '../../infra/store/model-facts.ts';
import { decodeDataset, rowsFile, tokensFile } from '../../models/dataset-fact.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import { tokenizerOf } from '../tokenizers.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import { createScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScoreOutcome, ScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerInput } from '../../rewards/types.ts';

/** Samples decoded or handed over before the event loop gets a turn. */
const chunk = 64;

/** Keeps scorer processes and datasets between jobs. */
export class RewardRole {
  readonly #cache: string;
  readonly #hosts = new Map<string, ScorerHost>();
  readonly #datasets = new Map<string, Promise<DatasetFact>>();

  constructor(cache: string) {
    this.#cache = cache;
  }

  async score(store: Store, message: JobMessage, input: RewardInput, progress: (done: number, total: number) => void): Promise<RewardOutput> {
    const trajectories = decodeTrajectories(await getBlob(store, message.runId, input.trajectories), input.trajectories);
    const dataset = await this.#dataset(store, input.dataset);
    const tokenizer = await tokenizerOf(await modelFolder(store, input.model, this.#cache));
    const host = await this.#host(store, message.runId, input);
    const total = trajectories.row_B.length;
    const outcomes: ScoreOutcome[] = [];
    for (let start = 0; start < total; start += chunk) {
      const samples = range(start, Math.min(start + chunk, total));
      outcomes.push(...(await host.score(samples.map((b) => inputOf(trajectories, dataset, b, (ids) => tokenizer.decode(ids, { skipSpecial: true }))))));
      progress(outcomes.length, total);
      await nextTurn();
    }
    const table = tabulate(outcomes);
    return { scores: await putJsonBlob(store, message.runId, table), failed: outcomes.filter((outcome) => !outcome.ok).length };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.close()));
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

  async #host(store: Store, runId: string, input: RewardInput): Promise<ScorerHost> {
    const id = JSON.stringify([input.scorer, input.settings, input.timeoutMs, input.memoryMb, input.concurrency]);
    const known = this.#hosts.get(id);
    if (known !== undefined) return known;
    const limits = { timeoutMs: input.timeoutMs, memoryMb: input.memoryMb, concurrency: input.concurrency };
    const { scorer } = input;
    const spec =
      scorer.type === 'builtin'
        ? { type: 'builtin' as const, name: scorer.name, settings: input.settings }
        : { type: 'module' as const, path: await this.#module(store, runId, scorer.module, scorer.fileName), exportName: scorer.exportName, settings: input.settings };
    const host = createScorerHost(spec, limits);
    await host.ready();
    this.#hosts.set(id, host);
    return host;
  }

  /** A user's module as a file, from the store: the run's own copy, whatever became of the original. */
  async #module(store: Store, runId: string, digest: string, fileName: string): Promise<string> {
    const folder = join(this.#cache, 'modules', digest);
    await mkdir(folder, { recursive: true });
    const path = join(folder, fileName);
    await writeFile(path, await getBlob(store, runId, digest));
    return path;
  }
}

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

function tabulate(outcomes: readonly ScoreOutcome[]): ScoreTable {
  const names = new Set(outcomes.flatMap((outcome) => (outcome.ok ? Object.keys(outcome.columns) : [])));
  const column = (name: string) =>
    outcomes.map((outcome) => {
      const value = outcome.ok ? outcome.columns[name] : undefined;
      return typeof value === 'number' && Number.isFinite(value) ? value : typeof value === 'boolean' ? Number(value) : null;
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
