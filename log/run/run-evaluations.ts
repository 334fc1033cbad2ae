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
export type DueCheck = (position: number) => boolean;

/** The part of RunLog that is needed here. */
interface EvaluationSource {
  readonly store: Store;
  readonly runId: RunId;
  stretches(newest: TermRecord): AsyncIterable<Stretch>;
  dueCheck(revision: number): Promise<DueCheck>;
  read<S extends z.ZodType>(key: string, schema: S): Promise<Stored<z.infer<S>> | undefined>;
}

/** Records that are read in parallel. */
const together = 16;

/** A place where a validation record can be. */
export interface Place {
  readonly term: number;
  readonly position: number;
}

/**
 * Validation records of positions from `first` on, in order of position. When two terms validated a position, the newer
 * one wins.
 */
export function evaluationsOf(log: EvaluationSource, head: LogEnd, first: number): Promise<EvalRecord[]> {
  return validationsOf<EvalRecord>(log, head, first, () => undefined);
}

/** Does what evaluationsOf does, and reads only those records that the caller does not know. */
export async function validationsOf<Known extends { readonly iteration: number }>(
  log: EvaluationSource,
  head: LogEnd,
  first: number,
  known: (place: Place) => Known | undefined,
): Promise<(Known | EvalRecord)[]> {
  const places: Place[] = [];
  for await (const place of placesOf(log, head, first)) places.push(place);
  const found = new Map<number, Known | EvalRecord>();
  const take = (record: Known | EvalRecord | undefined) => {
    if (record !== undefined && !found.has(record.iteration)) found.set(record.iteration, record);
  };
  let unread: Place[] = [];
  const readAll = async () => {
    for (const record of await Promise.all(unread.map((place) => readAt(log, place)))) take(record);
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

/** The validation of the highest position that has one. */
export async function newestEvaluationOf(log: EvaluationSource, head: LogEnd): Promise<EvalRecord | undefined> {
  for await (const place of placesOf(log, head, 0)) {
    const record = await readAt(log, place);
    if (record !== undefined) return record;
  }
  return undefined;
}

/** The validation of the lowest position that has one. */
export async function firstEvaluationOf(log: EvaluationSource, head: LogEnd): Promise<EvalRecord | undefined> {
  const places: Place[] = [];
  for await (const place of placesOf(log, head, 0)) places.push(place);
  for (const place of places.reverse()) {
    const record = await readAt(log, place);
    if (record !== undefined) return record;
  }
  return undefined;
}

/** Was the policy at this position validated, in any term of the log? */
export async function isEvaluated(log: EvaluationSource, newest: TermRecord, position: number): Promise<boolean> {
  for await (const term of termsAt(log, newest, position))
    if ((await log.store.head(keys.evaluation(log.runId, term, position))) !== undefined) return true;
  return false;
}

/** The validation of the policy at this position, in the newest term that has one. */
export async function evaluationAt(
  log: EvaluationSource,
  newest: TermRecord,
  position: number,
): Promise<EvalRecord | undefined> {
  for await (const term of termsAt(log, newest, position)) {
    const record = await readAt(log, { term, position });
    if (record !== undefined) return record;
  }
  return undefined;
}

/** The terms of the log in which this position can be validated, newest first. */
async function* termsAt(log: EvaluationSource, newest: TermRecord, position: number): AsyncGenerator<number> {
  for await (const { term, from } of log.stretches(newest)) {
    if (position < from) continue;
    yield term;
    if (position > from) return;
  }
}

/**
 * Positions that are validated, from the head down to `first`. The position where a term starts belongs to two terms.
 */
async function* placesOf(
  log: EvaluationSource,
  { termRecord, position: last }: LogEnd,
  first: number,
): AsyncGenerator<Place> {
  let until = last;
  for await (const stretch of log.stretches(termRecord)) {
    const isDue = await log.dueCheck(stretch.revision);
    for (let position = until; position >= Math.max(stretch.from, first); position--)
      if (isDue(position)) yield { term: stretch.term, position };
    until = Math.min(until, stretch.from);
    if (until < first) return;
  }
}

async function readAt(log: EvaluationSource, { term, position }: Place): Promise<EvalRecord | undefined> {
  return (await log.read(keys.evaluation(log.runId, term, position), evalRecord))?.record;
}

/** Which positions a revision validates. When its recipe cannot be read, every position may have a validation. */
export async function readDueCheck(revision: Promise<RevisionRecord>): Promise<DueCheck> {
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
