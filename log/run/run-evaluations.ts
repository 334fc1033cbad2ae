/**
 * Finds the validation records of a run without reading every position: the recipe revision of each term says which
 * positions are validated.
 */
import type { z } from 'zod';
import { isDamage } from '../../core/records/damage.ts';
import type { RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { InvalidRecipeError, isValidationDue, parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { evalRecord } from '../../core/records/schema.ts';
import type { EvalRecord, RevisionRecord, TermRecord } from '../../core/records/schema.ts';
import type { LogEnd, Stretch } from './lineage.ts';
import type { Stored } from '../objects/records.ts';

/** Which positions a recipe revision validates. */
type DueCheck = (position: number) => boolean;

/** The part of RunLog that is needed here. */
interface EvaluationSource {
  readonly store: Store;
  readonly runId: RunId;
  head(): Promise<LogEnd | undefined>;
  newestTerm(): Promise<Stored<TermRecord> | undefined>;
  revision(n: number): Promise<RevisionRecord>;
  stretches(newest: TermRecord): AsyncIterable<Stretch>;
  read<S extends z.ZodType>(key: string, schema: S): Promise<Stored<z.infer<S>> | undefined>;
}

/** Records that are read in parallel. */
const together = 16;

/** A place where a validation record can be. */
interface Place {
  readonly term: number;
  readonly position: number;
}

/** The validations of one run's committed log. */
export class RunEvaluations {
  readonly #log: EvaluationSource;
  readonly #dueChecks = new Map<number, DueCheck>();

  constructor(log: EvaluationSource) {
    this.#log = log;
  }

  /** Clears the cache: the next call reads the recipe revisions again. */
  forget(): void {
    this.#dueChecks.clear();
  }

  /** Validation records of positions from `first` on, ascending. */
  async all(first = 0): Promise<EvalRecord[]> {
    const head = await this.#log.head();
    return head === undefined ? [] : this.upTo(head, first);
  }

  /**
   * Validation records of positions from `first` on, in order of position. When two terms validated a position, the
   * newer one wins. Reads only those records that the caller does not know.
   */
  async upTo<Known extends { readonly iteration: number } = EvalRecord>(
    end: LogEnd,
    first: number,
    known: (place: Place) => Known | undefined = () => undefined,
  ): Promise<(Known | EvalRecord)[]> {
    const places: Place[] = [];
    for await (const place of this.#places(end, first)) places.push(place);
    const found = new Map<number, Known | EvalRecord>();
    const take = (record: Known | EvalRecord | undefined) => {
      if (record !== undefined && !found.has(record.iteration)) found.set(record.iteration, record);
    };
    let unread: Place[] = [];
    const readAll = async () => {
      for (const record of await Promise.all(unread.map((place) => this.#read(place)))) take(record);
      unread = [];
    };
    // Places come newest first, and a record must be taken before that of an older term.
    for (const place of places) {
      const record = known(place);
      if (record === undefined) unread.push(place);
      else if (unread.some(({ position }) => position === place.position)) await readAll();
      take(record);
      if (unread.length >= together) await readAll();
    }
    await readAll();
    return [...found.values()].sort((a, b) => a.iteration - b.iteration);
  }

  /** The validation of the highest position that has one, of the log that ends at `end`. */
  async newest(end: LogEnd): Promise<EvalRecord | undefined> {
    for await (const place of this.#places(end, 0)) {
      const record = await this.#read(place);
      if (record !== undefined) return record;
    }
    return undefined;
  }

  /** The validation of the lowest position that has one. */
  async first(end: LogEnd): Promise<EvalRecord | undefined> {
    const places: Place[] = [];
    for await (const place of this.#places(end, 0)) places.push(place);
    for (const place of places.reverse()) {
      const record = await this.#read(place);
      if (record !== undefined) return record;
    }
    return undefined;
  }

  /** Was the policy at this position validated, in any term of the log? */
  async has(position: number): Promise<boolean> {
    const { store, runId } = this.#log;
    for await (const term of this.#termsAt(position))
      if ((await store.head(keys.evaluation(runId, term, position))) !== undefined) return true;
    return false;
  }

  /** The validation of the policy at this position, in the newest term that has one. */
  async at(position: number): Promise<EvalRecord | undefined> {
    for await (const term of this.#termsAt(position)) {
      const record = await this.#read({ term, position });
      if (record !== undefined) return record;
    }
    return undefined;
  }

  /** Which positions a recipe revision validates. Revisions never change. */
  async dueCheck(revision: number): Promise<DueCheck> {
    const check = this.#dueChecks.get(revision) ?? (await readDueCheck(this.#log.revision(revision)));
    this.#dueChecks.set(revision, check);
    return check;
  }

  /** The terms of the log in which this position can be validated, newest first. */
  async *#termsAt(position: number): AsyncGenerator<number> {
    const newest = await this.#log.newestTerm();
    if (newest === undefined) return;
    for await (const { term, from } of this.#log.stretches(newest.record)) {
      if (position < from) continue;
      yield term;
      if (position > from) return;
    }
  }

  /**
   * Positions that are validated, from the end down to `first`. The position where a term starts belongs to two terms.
   */
  async *#places({ termRecord, position: last }: LogEnd, first: number): AsyncGenerator<Place> {
    let until = last;
    for await (const stretch of this.#log.stretches(termRecord)) {
      const isDue = await this.dueCheck(stretch.revision);
      for (let position = until; position >= Math.max(stretch.from, first); position--)
        if (isDue(position)) yield { term: stretch.term, position };
      until = Math.min(until, stretch.from);
      if (until < first) return;
    }
  }

  async #read({ term, position }: Place): Promise<EvalRecord | undefined> {
    return (await this.#log.read(keys.evaluation(this.#log.runId, term, position), evalRecord))?.record;
  }
}

/** Which positions a revision validates. When its recipe cannot be read, every position may have a validation. */
async function readDueCheck(revision: Promise<RevisionRecord>): Promise<DueCheck> {
  try {
    const { recipe: tree, inputs } = await revision;
    if (inputs.validation === undefined) return () => false;
    const recipe = parseRecipe(tree);
    const iterations = totalIterations(recipe, inputs.trainRows);
    return (position) => isValidationDue(recipe, position, iterations);
  } catch (error) {
    if (error instanceof InvalidRecipeError || isDamage(error)) return () => true;
    throw error;
  }
}
