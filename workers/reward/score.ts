/**
 * The reward stage: passes the text of every sample to its scorer, which runs in its own process. A failed call is a
 * failed sample.
 */
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import type { EndedSamples } from '../../core/wire/ended-samples.ts';
import type { RewardInput, RewardOutput, ScoringSettings } from '../../core/wire/jobs/index.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Store } from '../../core/ports/store.ts';
import { fixScorerHint, shownModule } from '../../core/scorer-hint.ts';
import { faultPoint } from '../../log/faults/index.ts';
import { getBlob, putJsonBlob } from '../../log/objects/blobs.ts';
import { scorerPackages } from '../../rewards/host/scorer-packages.ts';
import { whileRoomHere } from '../../log/objects/free-space.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { OpenDatasets } from '../../models/open-datasets.ts';
import { sampleAt, SampleKeys, samplesIn } from './ahead-samples.ts';
import type { EndedSample } from '../engine/job/context.ts';
import { KeptHosts } from './kept-hosts.ts';
import { PrintLimit } from './prints.ts';
import { ScoringAhead } from './scoring-ahead.ts';
import { inputsOf, nameOfSample, scorerInputs, scorerRows, Scoring } from './scoring.ts';
import { tabulate } from './tabulate.ts';
import { asksEndpoint, hostWithin } from './endpoints.ts';
import type { PermitsOf } from './endpoints.ts';
import { withComponents } from '../../rewards/components.ts';
import { namedVariables, withSecrets } from '../../rewards/host/secrets.ts';
import { at } from '../../core/at.ts';
import { openTokenizerThread } from '../../models/tokenizer-thread.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import { decodeScorerFiles, writeScorer } from '../../rewards/scorer-files.ts';
import type { ScorerFiles } from '../../rewards/scorer-files.ts';
import type { Desks } from '../../rewards/host/host-types.ts';
import { createScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerInput } from '../../rewards/types.ts';

/** Number of runs whose output limits are kept, by last use. */
const keptLimits = 4;
/** The listeners of a job that is being scored. */
export interface ScoringReport {
  progress(done: number, total: number): void;
  /** A line for the run's log. */
  say(text: string): void;
}

/** The result of a scoring job, and how many of its samples had been scored ahead. */
export interface Scored {
  readonly output: RewardOutput;
  readonly ahead: number;
}

/** Keeps scorer processes and datasets between jobs. */
export class RewardRole {
  /** Samples that are scored ahead of their reward job. */
  readonly ahead: ScoringAhead;
  readonly #cache: string;
  readonly #permitsOf: PermitsOf;
  readonly #hosts = new KeptHosts();
  /** Output limit of each run's scorers. */
  readonly #prints = new Map<string, PrintLimit>();
  readonly #datasets = new OpenDatasets(readDataset);

  /** `aheadChanged`: samples of other rollout jobs than before are scored ahead. */
  constructor(cache: string, permitsOf: PermitsOf, aheadChanged: () => void = () => {}) {
    this.#cache = cache;
    this.#permitsOf = permitsOf;
    this.ahead = new ScoringAhead(aheadChanged);
  }

  async score(
    store: Store,
    message: JobMessage,
    input: RewardInput,
    report: ScoringReport,
    signal?: AbortSignal,
  ): Promise<Scored> {
    this.ahead.isAlive(message.runId);
    const trajectories = decodeTrajectories(
      await getBlob(store, message.runId, input.trajectories),
      input.trajectories,
    );
    const dataset = await this.#datasets.open(store, input.dataset);
    const rows = await scorerRows(dataset, trajectories.row_S);
    const tokenizer = await openTokenizerThread(await modelFolder(store, input.model, this.#cache, 'text'));
    const total = trajectories.row_S.length;
    const samples = (indices: readonly number[]) =>
      inputsOf({ trajectories, rows, tokenizer, withPrompts: asksEndpoint(input) }, indices);
    const prints = this.#printLimit(message.runId, report);
    // After a pause because of failed samples the scorer is another one: what it gave before does not count.
    const keys = input.again === undefined ? new SampleKeys(hostId(message.runId, input), input) : undefined;
    const keyOf = (b: number) => keys?.of(sampleAt(trajectories, b)) ?? '';
    let scoredAhead = 0;
    const outcomes = await this.#withHost(store, message.runId, input, async (host) => {
      const scoring = new Scoring({
        host,
        trajectories,
        samples,
        signal,
        lists: input.lists,
        print: (line) => prints.print(line),
        ...(keys !== undefined && { ahead: (b) => this.ahead.take(keyOf(b)) }),
      });
      const scored = await scoring.all((done) => {
        report.progress(done, total);
        faultPoint('score.chunk', { done, runId: message.runId });
      });
      const settled = input.deterministic
        ? await scoring.withoutAccidents(scored, fixScorerHint(message.runId, input.scorer))
        : scored;
      scoredAhead = scoring.scoredAhead;
      return withComponents(settled, input.components ?? []);
    }).finally(() => prints.flush());
    const sources = [...trajectories.row_S].map((row) => rows.get(row)?.dataSource ?? '');
    const columns = tabulate(outcomes, sources, trajectories.drawOffsets_G1);
    const table: ScoreTable = { trajectories: input.trajectories, ...columns };
    const scores = await putJsonBlob(store, message.runId, table);
    this.ahead.release(outcomes.map((_, b) => keyOf(b)));
    return { output: { scores, failed: outcomes.filter((outcome) => !outcome.ok).length }, ahead: scoredAhead };
  }

  /**
   * Begins to score samples whose rollout job has no result yet. It does not wait, and reports in the run's log why it
   * had to stop; the reward job finds the same trouble again.
   */
  scoreAhead(
    openStore: () => Promise<Store>,
    told: EndedSamples,
    scoring: ScoringSettings,
    report: ScoringReport,
  ): void {
    const { runId, jobId } = told;
    const keys = new SampleKeys(hostId(runId, scoring), scoring);
    const samples = samplesIn(told);
    let inputs: Promise<readonly ScorerInput[]> | undefined;
    const prepared = () => (inputs ??= this.#inputsAhead(openStore, scoring, samples));
    const score = async (i: number, signal: AbortSignal) => {
      const input = at(await prepared(), i);
      const prints = this.#printLimit(runId, report);
      const name = ({ draw, row, sample }: EndedSample) => nameOfSample(draw, row, sample);
      const speaker = (index: number | undefined) => (index === undefined ? 'loading' : name(at(samples, i)));
      const onPrint = (line: string, index: number | undefined) => prints.print(`scorer, ${speaker(index)}: ${line}`);
      const outcomes = await this.#withHost(await openStore(), runId, scoring, (host) =>
        host.score([input], { signal, onPrint }),
      );
      return at(outcomes, 0);
    };
    this.ahead.add(
      runId,
      samples.map((sample, i) => ({
        key: keys.of(sample),
        runId,
        jobId,
        bytes: sample.tokens.byteLength,
        score: (signal) => score(i, signal),
      })),
      scoring.concurrency,
      (error) => report.say(`samples are not scored ahead: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  async #inputsAhead(
    openStore: () => Promise<Store>,
    scoring: ScoringSettings,
    samples: readonly EndedSample[],
  ): Promise<ScorerInput[]> {
    const store = await openStore();
    const rows = await scorerRows(
      await this.#datasets.open(store, scoring.dataset),
      samples.map(({ row }) => row),
    );
    const tokenizer = await openTokenizerThread(await modelFolder(store, scoring.model, this.#cache, 'text'));
    const tokens = samples.map((sample) => sample.tokens);
    return scorerInputs({ rows, tokenizer, withPrompts: asksEndpoint(scoring) }, tokens, (i) => at(samples, i).row);
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
    this.ahead.drop(runId);
    return this.#hosts.endRun(runId);
  }

  close(): Promise<void> {
    this.ahead.close();
    return this.#hosts.close();
  }

  async #withHost<T>(
    store: Store,
    runId: string,
    input: ScoringSettings,
    work: (host: ScorerHost) => Promise<T>,
  ): Promise<T> {
    const guarded = async (host: ScorerHost): Promise<T> => {
      try {
        return await work(host);
      } catch (error) {
        // The host refuses a module that it cannot load. It does not know which command fixes that, so the hint is
        // added here.
        if (!(error instanceof InvalidInputError)) throw error;
        const hint = fixScorerHint(runId, input.scorer);
        throw new InvalidInputError(error.message, { hint, ...(error.where && { where: error.where }), cause: error });
      }
    };
    const say = (line: string) => this.#prints.get(runId)?.print(line);
    const start = () =>
      hostWithin(input, runId, this.#permitsOf, say, (desks) => this.#startHost(store, runId, input, desks));
    return this.#hosts.use(hostId(runId, input), runId, start, guarded);
  }

  async #startHost(store: Store, runId: string, input: ScoringSettings, desks?: Desks): Promise<ScorerHost> {
    const limits = { timeoutMs: input.timeoutMs, memoryMb: input.memoryMb, concurrency: input.concurrency };
    const { scorer } = input;
    const detail = {
      settings: withSecrets(input.settings, process.env),
      secrets: namedVariables(input.settings, process.env),
      desks,
    };
    if (scorer.type === 'builtin') return createScorerHost({ type: 'builtin', name: scorer.name, ...detail }, limits);
    const files = await this.#files(store, runId, scorer);
    const { exportName } = scorer;
    const { lists } = input;
    const shownAs = shownModule(scorer.fileName);
    const sandbox = input.sandbox === true;
    return createScorerHost({ type: 'module', ...files, exportName, lists, shownAs, sandbox, ...detail }, limits);
  }

  /**
   * A user's module with its other files and packages, from the store: the run's own copy, independent of the original.
   */
  async #files(
    store: Store,
    runId: string,
    { module: digest, files: others, fileName }: Extract<ScoringSettings['scorer'], { type: 'module' }>,
  ): Promise<{ readonly path: string; readonly folder?: string; readonly packages?: string }> {
    const folder = join(this.#cache, 'modules', others === undefined ? digest : `${digest}-${others}`);
    const module = await getBlob(store, runId, digest);
    const { files, requirements } =
      others === undefined ? oneFile : decodeScorerFiles(await getBlob(store, runId, others));
    let path = '';
    await whileRoomHere("petrel's cache", this.#cache, async () => {
      path = await writeScorer(folder, { fileName, module, files });
    });
    return {
      path,
      ...(files.size > 0 && { folder }),
      ...(requirements !== undefined && { packages: await scorerPackages(this.#cache, requirements) }),
    };
  }
}

const oneFile: ScorerFiles = { files: new Map() };

/** Calls with the same id share a host. */
function hostId(
  runId: string,
  { scorer, settings, timeoutMs, memoryMb, concurrency, sandbox, lists, endpoint }: ScoringSettings,
): string {
  return JSON.stringify([runId, scorer, settings, timeoutMs, memoryMb, concurrency, sandbox, lists, endpoint]);
}
