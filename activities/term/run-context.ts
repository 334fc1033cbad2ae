/** The log, recipe and settings of a run, which every stage needs. Parsed once per term. */
import { TerminalError } from '../../core/errors.ts';
import { parseStoredRecipe } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { promptsPerWave, totalIterations } from '../../core/recipe/index.ts';
import type { Draw } from '../../core/rl/draws.ts';
import { drawsPast } from '../../core/rl/draws.ts';
import type { RevisionRecord, RunInputs, TermRecord } from '../../core/records/schema.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import { withCurriculum } from '../draws/curriculum.ts';
import { refuseForeign } from './ownership.ts';
import { withOwnSampler } from '../draws/own-sampler.ts';
import { withChosenPrompts } from '../draws/prompt-trackers.ts';
import { completeTermOfTrainer } from './trainer-terms.ts';
import type { ActivityPorts } from '../ports/index.ts';

/** Identifies a run in the arguments of activities. */
export interface RunRef {
  readonly runId: string;
  readonly store: string;
  /** Position at which the workflow expects the log to end; absent in workflows that older code started. */
  readonly position?: number;
}

export interface RunContext {
  readonly log: RunLog;
  readonly recipe: Recipe;
  readonly revision: RevisionRecord;
  readonly inputs: RunInputs;
  readonly iterations: number;
  /** The draws from this cursor on that are sampled together. */
  readonly draws: (cursor: number, leavesOut?: (draw: Draw) => boolean) => readonly Draw[];
  /** The draws from which these are chosen; absent: there is no choice. */
  readonly candidates?: (cursor: number) => readonly Draw[];
}

interface KnownRun {
  readonly log: RunLog;
  readonly context: RunContext;
  readonly term: number;
}

/**
 * Size of the cache: more runs than a machine drives at once. A control process lives for months, so old entries are
 * evicted.
 */
const keptRuns = 32;

/** The run may have moved to another store since it was cached. */
const keyOf = ({ runId, store }: RunRef): string => `${runId} ${store}`;

type RunPorts = Pick<
  ActivityPorts,
  | 'openLog'
  | 'openStore'
  | 'getJsonBlob'
  | 'drivesRun'
  | 'stack'
  | 'admitWork'
  | 'openNextTerm'
  | 'standbyStart'
  | 'process'
  | 'now'
  | 'say'
>;

export class RunContexts {
  readonly #ports: RunPorts;
  /** Moves the run to the end of the eviction order. */
  readonly #known = new Map<string, KnownRun>();

  constructor(ports: RunPorts) {
    this.#ports = ports;
  }

  /** Throws TerminalError `UnknownRun` for a run that no command or schedule of this home has started. */
  async log({ runId, store }: RunRef): Promise<RunLog> {
    if (!(await this.#ports.drivesRun({ runId, store })))
      throw new TerminalError('UnknownRun', `expected a run that this stack drives, got ${runId} in ${store}`, {
        hint: `petrel resume ${runId} lets this stack drive it`,
      });
    return (
      this.#known.get(keyOf({ runId, store }))?.log ?? this.#ports.openLog(await this.#ports.openStore(store), runId)
    );
  }

  /** The facts of this term; without a term, the facts of the future first one. */
  async of(ref: RunRef, term: TermRecord | undefined): Promise<RunContext> {
    const known = this.#known.get(keyOf(ref));
    if (known !== undefined && known.term === (term?.term ?? 0)) return this.#keep(keyOf(ref), known);
    const log = await this.log(ref);
    const context = makeContext(log, await log.revision(term?.revision ?? 1), term?.skippedDraws ?? []);
    return this.#keep(keyOf(ref), { log, context, term: term?.term ?? 0 });
  }

  #keep(key: string, known: KnownRun): RunContext {
    this.#known.delete(key);
    this.#known.set(key, known);
    if (this.#known.size > keptRuns) this.#known.delete(this.#known.keys().next().value ?? '');
    return known.context;
  }

  /**
   * The head of the log, for a process that will append. Throws FencedError when another stack drives the run, or when
   * its term is closed: a record would be refused anyway, and this error names the stack. RetryableError `StoreGone`:
   * see `ensureThere`.
   */
  async head(ref: RunRef): Promise<{ readonly context: RunContext; readonly head: Head | undefined }> {
    const log = await this.log(ref);
    await this.#ports.admitWork(log.store);
    let head = await log.head();
    if (head === undefined) await log.ensureThere();
    else if (await completeTermOfTrainer(this.#ports, log, head)) head = await log.head();
    refuseForeign(head, this.#ports.stack, ref.runId);
    return { context: await this.#drawingAt(ref, head), head };
  }

  /** Does what `head` does where this process has left the log, without a look at the store; undefined elsewhere. */
  async ownHead(ref: RunRef): Promise<{ readonly context: RunContext; readonly head: Head } | undefined> {
    const log = await this.log(ref);
    const head = await log.ownHead();
    if (head === undefined) return undefined;
    await this.#ports.admitWork(log.store);
    return { context: await this.#drawingAt(ref, head), head };
  }

  /** The next stage of this run looks for the end of the log first. */
  leave(ref: RunRef): void {
    this.#known.get(keyOf(ref))?.log.appended(undefined);
  }

  async #drawingAt(ref: RunRef, head: Head | undefined): Promise<RunContext> {
    const plain = await this.of(ref, head?.termRecord);
    const drawing = await withChosenPrompts(this.#ports, await withCurriculum(this.#ports, plain, head), head);
    return withOwnSampler(this.#ports, drawing, head);
  }
}

function makeContext(log: RunLog, revision: RevisionRecord, skipped: TermRecord['skippedDraws']): RunContext {
  const recipe = parseStoredRecipe(revision.recipe);
  const { inputs } = revision;
  const stream = { rows: inputs.trainRows, seed: recipe.data.seed ?? recipe.seed, shuffle: recipe.data.shuffle };
  return {
    log,
    recipe,
    revision,
    inputs,
    iterations: totalIterations(recipe, inputs.trainRows),
    draws: (cursor, leavesOut) => drawsPast(stream, cursor, promptsPerWave(recipe), skipped, leavesOut),
  };
}
