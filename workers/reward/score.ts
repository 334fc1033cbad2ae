/**
 * The reward stage: passes the text of every sample to its scorer, which runs in its own process. A failed call is a
 * failed sample.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import type { RewardInput, RewardOutput } from '../../core/wire/jobs.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Store } from '../../core/ports/store.ts';
import { fixScorerHint, shownModule } from '../../core/scorer-hint.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { getBlob, putJsonBlob } from '../../infra/store/blobs.ts';
import { whileRoomHere } from '../../infra/store/free-space.ts';
import { modelFolder } from '../../infra/store/model-facts.ts';
import { OpenDatasets } from '../datasets.ts';
import { KeptHosts } from './kept-hosts.ts';
import { PrintLimit } from './prints.ts';
import { inputsOf, scorerRows, Scoring } from './scoring.ts';
import { tabulate } from './tabulate.ts';
import { withComponents } from '../../rewards/components.ts';
import { namedVariables, withSecrets } from '../../rewards/host/secrets.ts';
import { openTokenizerThread } from '../../models/tokenizer-thread.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import { createScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerHost } from '../../rewards/host/scorer-host.ts';

/** Number of runs whose output limits are kept, by last use. */
const keptLimits = 4;
/** The listeners of a job that is being scored. */
export interface ScoringReport {
  progress(done: number, total: number): void;
  /** A line for the run's log. */
  say(text: string): void;
}

/** Keeps scorer processes and datasets between jobs. */
export class RewardRole {
  readonly #cache: string;
  readonly #hosts = new KeptHosts();
  /** Output limit of each run's scorers. */
  readonly #prints = new Map<string, PrintLimit>();
  readonly #datasets = new OpenDatasets();

  constructor(cache: string) {
    this.#cache = cache;
  }

  async score(
    store: Store,
    message: JobMessage,
    input: RewardInput,
    report: ScoringReport,
    signal?: AbortSignal,
  ): Promise<RewardOutput> {
    const trajectories = decodeTrajectories(
      await getBlob(store, message.runId, input.trajectories),
      input.trajectories,
    );
    const dataset = await this.#datasets.open(store, input.dataset);
    const rows = await scorerRows(dataset, trajectories.row_S);
    const tokenizer = await openTokenizerThread(await modelFolder(store, input.model, this.#cache, 'text'));
    const total = trajectories.row_S.length;
    const samples = (indices: readonly number[]) => inputsOf({ trajectories, rows, tokenizer }, indices);
    const prints = this.#printLimit(message.runId, report);
    const outcomes = await this.#withHost(store, message.runId, input, async (host) => {
      const scoring = new Scoring({ host, trajectories, samples, signal, print: (line) => prints.print(line) });
      const scored = await scoring.all((done) => {
        report.progress(done, total);
        faultPoint('score.chunk', { done, runId: message.runId });
      });
      const settled = input.deterministic
        ? await scoring.withoutAccidents(scored, fixScorerHint(message.runId, input.scorer))
        : scored;
      return withComponents(settled, input.components ?? []);
    }).finally(() => prints.flush());
    const sources = [...trajectories.row_S].map((row) => rows.get(row)?.dataSource ?? '');
    const table: ScoreTable = { trajectories: input.trajectories, ...tabulate(outcomes, sources) };
    return {
      scores: await putJsonBlob(store, message.runId, table),
      failed: outcomes.filter((outcome) => !outcome.ok).length,
    };
  }

  /** One limit for all jobs of a run. */
  #printLimit(runId: string, report: ScoringReport): PrintLimit {
    const limit = this.#prints.get(runId) ?? new PrintLimit((text) => report.say(text));
    this.#prints.delete(runId);
    this.#prints.set(runId, limit);
    for (const old of [...this.#prints.keys()].slice(0, -keptLimits)) this.#prints.delete(old);
    return limit;
  }

  /** Ends the run's scorer processes; samples that they are scoring are rejected. */
  endRun(runId: string): Promise<void> {
    return this.#hosts.endRun(runId);
  }

  close(): Promise<void> {
    return this.#hosts.close();
  }

  async #withHost<T>(
    store: Store,
    runId: string,
    input: RewardInput,
    work: (host: ScorerHost) => Promise<T>,
  ): Promise<T> {
    const { scorer, settings, timeoutMs, memoryMb, concurrency, sandbox } = input;
    const id = JSON.stringify([runId, scorer, settings, timeoutMs, memoryMb, concurrency, sandbox]);
    const guarded = async (host: ScorerHost): Promise<T> => {
      try {
        return await work(host);
      } catch (error) {
        // The host refuses a module that it cannot load. It does not know which command fixes that, so the hint is added
        // here.
        if (!(error instanceof InvalidInputError)) throw error;
        const hint = fixScorerHint(runId, input.scorer);
        throw new InvalidInputError(error.message, { hint, ...(error.where && { where: error.where }), cause: error });
      }
    };
    return this.#hosts.use(id, runId, () => this.#startHost(store, runId, input), guarded);
  }

  async #startHost(store: Store, runId: string, input: RewardInput): Promise<ScorerHost> {
    const limits = { timeoutMs: input.timeoutMs, memoryMb: input.memoryMb, concurrency: input.concurrency };
    const { scorer } = input;
    const detail = {
      settings: withSecrets(input.settings, process.env),
      secrets: namedVariables(input.settings, process.env),
    };
    if (scorer.type === 'builtin') return createScorerHost({ type: 'builtin', name: scorer.name, ...detail }, limits);
    const path = await this.#module(store, runId, scorer.module, scorer.fileName);
    const { exportName } = scorer;
    const shownAs = shownModule(scorer.fileName);
    const sandbox = input.sandbox === true;
    return createScorerHost({ type: 'module', path, exportName, shownAs, sandbox, ...detail }, limits);
  }

  /** The file of a user's module, from the store: the run's own copy, independent of the original. */
  async #module(store: Store, runId: string, digest: string, fileName: string): Promise<string> {
    const folder = join(this.#cache, 'modules', digest);
    const path = join(folder, fileName);
    // Another worker of this machine may be loading it.
    const partial = join(folder, `.${process.pid}-${fileName}`);
    const bytes = await getBlob(store, runId, digest);
    await whileRoomHere("petrel's cache", this.#cache, async () => {
      await mkdir(folder, { recursive: true });
      await writeFile(partial, bytes);
      await rename(partial, path);
    });
    return path;
  }
}
