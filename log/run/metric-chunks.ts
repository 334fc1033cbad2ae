/**
 * Chunks of metrics beside a run's log: read where they exist, written for ranges that are complete. They are derived:
 * what a chunk says is always in the records, too, and a chunk that is missing or cannot be used costs only requests.
 */
import { isDamage } from '../../core/records/damage.ts';
import { PetrelError } from '../../core/errors.ts';
import { keys, metricChunkIn } from '../../core/records/keys.ts';
import { chunkOf, chunkSizes, metricChunk, rowsOf, windowsIn } from '../../core/records/metric-columns.ts';
import type { MeasuredIteration, MeasuredValidation, Range } from '../../core/records/metric-columns.ts';
import type { LogEnd, Stretch } from './lineage.ts';
import { encodeRecord, readRecord } from '../objects/records.ts';
import type { RunLog } from './run-log.ts';

/** What the records of a part of a log say. */
export interface MeasuredLog {
  /** Ascending, without gaps, each with the term whose folder holds it. */
  readonly iterations: readonly (MeasuredIteration & { readonly term: number })[];
  /** Ascending by position. */
  readonly validations: readonly MeasuredValidation[];
}

/** Objects that are read in parallel. */
const together = 16;
/** A chunk is read for more than this many of its iterations; for fewer, their records are. */
const worthFrom: Readonly<Record<(typeof chunkSizes)[number], number>> = { 100: 4, 1000: 100 };
/** A larger chunk is not written: `create` takes a few MiB, and readers use the smaller chunks. */
const largestChunkBytes = 8 * 1024 * 1024;

/** The log from `from` on, which may be the position where it begins, to its end: by chunks where there are some. */
export async function measuredLog(log: RunLog, from: number, end: LogEnd): Promise<MeasuredLog> {
  const { stretches, begin } = await wholeLog(log, end);
  const found = await readChunks(log, { first: Math.max(begin + 1, from), last: end.position }, begin, stretches, end);
  const iterations = [...found.iterations];
  for (const { first, last } of found.rest) iterations.push(...(await readRecords(log, first, last, end)));
  const known = new Map(found.validations.map((one) => [`${one.term} ${one.iteration}`, one]));
  const validations = await log.evaluations.upTo(end, Math.max(begin, from), ({ term, position }) =>
    known.get(`${term} ${position}`),
  );
  return {
    iterations: iterations
      .map((one) => ({ ...one, term: holderOf(one.iteration, stretches) }))
      .sort((a, b) => a.iteration - b.iteration),
    validations,
  };
}

interface FoundInChunks {
  readonly iterations: readonly MeasuredIteration[];
  readonly validations: readonly MeasuredValidation[];
  /** Ranges that no chunk has. */
  readonly rest: readonly Range[];
}

/** Large chunks first, smaller ones where they are missing. */
async function readChunks(
  log: RunLog,
  wanted: Range,
  begin: number,
  stretches: readonly Stretch[],
  end: LogEnd,
): Promise<FoundInChunks> {
  const iterations: MeasuredIteration[] = [];
  const validations: MeasuredValidation[] = [];
  let rest: readonly Range[] = [wanted];
  for (const size of chunkSizes.toReversed()) {
    const parts = rest.flatMap((range) => windowsIn(size, range));
    const open: Range[] = [];
    for (let start = 0; start < parts.length; start += together) {
      const read = parts.slice(start, start + together).map(async ({ window, part }) => {
        const isWorth = window.last <= end.position && part.last - part.first >= worthFrom[size];
        return { part, chunk: isWorth ? await readChunk(log, window, begin, stretches) : undefined };
      });
      for (const { part, chunk } of await Promise.all(read)) {
        if (chunk === undefined) open.push(part);
        else iterations.push(...chunk.iterations.filter(({ iteration }) => isIn(iteration, part)));
        validations.push(...(chunk?.validations ?? []));
      }
    }
    rest = joined(open);
  }
  return { iterations, validations, rest };
}

/**
 * Undefined for a chunk that is missing, damaged, of another version of petrel, or of another range, run or lineage
 * than its key says.
 */
async function readChunk(
  { store, runId }: RunLog,
  window: Range,
  begin: number,
  stretches: readonly Stretch[],
): Promise<ReturnType<typeof rowsOf>> {
  const term = holderOf(window.last, stretches);
  try {
    const chunk = (await readRecord(store, keys.metricChunk(runId, window, term), metricChunk))?.record;
    if (chunk === undefined || chunk.runId !== runId || chunk.term !== term) return undefined;
    if (chunk.first !== Math.max(window.first, begin + 1) || chunk.last !== window.last) return undefined;
    return rowsOf(chunk);
  } catch (error) {
    if (isDamage(error) || (error instanceof PetrelError && error.code === 'NewerFormat')) return undefined;
    throw error;
  }
}

async function readRecords(log: RunLog, first: number, last: number, end: LogEnd): Promise<MeasuredIteration[]> {
  const found: MeasuredIteration[] = [];
  for (let start = first; start <= last; start += together) {
    const numbers = Array.from({ length: Math.min(together, last - start + 1) }, (_, i) => start + i);
    const read = numbers.map(async (k) => ({ k, ...(await log.iteration(k, end.termRecord)) }));
    for (const { k, batch, update } of await Promise.all(read))
      found.push({ iteration: k, batch: batch.record, update: update.record });
  }
  return found;
}

/** What `writeChunks` has left to do. */
export interface WrittenChunks {
  /** Keys that this call has written. */
  readonly written: readonly string[];
  /** Nothing that is complete lacks its chunk: the next one follows with the next range. */
  readonly isComplete: boolean;
}

/** Chunks that one call writes at most: a long run from before there were chunks gets them little by little. */
const atOnce = 12;

/**
 * Writes the chunks that the log up to `end` lacks. A range whose last position waits for its validation is written
 * after that. A killed writer leaves no part of a chunk, because `create` has none. `tooLarge`: keys of chunks that an
 * earlier call has found to be too large, to which this one adds.
 */
export async function writeChunks(log: RunLog, end: LogEnd, tooLarge: Set<string> = new Set()): Promise<WrittenChunks> {
  const { store, runId } = log;
  const { stretches, begin } = await wholeLog(log, end);
  const listed = new Set((await store.children(keys.metricChunks(runId))).filter((name) => metricChunkIn(name)));
  const written: string[] = [];
  let waits = false;
  for (const size of chunkSizes) {
    for (const { window } of windowsIn(size, { first: begin + 1, last: end.position })) {
      const key = keys.metricChunk(runId, window, holderOf(window.last, stretches));
      const isThere = listed.has(key.slice(keys.metricChunks(runId).length)) || tooLarge.has(key);
      if (window.last > end.position || isThere) continue;
      if (written.length === atOnce) return { written, isComplete: false };
      if (window.last === end.position && (await awaitsValidation(log, end))) waits = true;
      else {
        const outcome = await writeChunk(log, key, window, begin, stretches, end);
        if (outcome === 'created') written.push(key);
        else if (outcome === 'too large') tooLarge.add(key);
      }
    }
  }
  return { written, isComplete: !waits };
}

async function writeChunk(
  log: RunLog,
  key: string,
  window: Range,
  begin: number,
  stretches: readonly Stretch[],
  end: LogEnd,
): Promise<'created' | 'exists' | 'too large'> {
  // The position where the log begins has no iteration; its validation is in the first chunk.
  const from = begin >= window.first - 1 ? begin : window.first;
  const { iterations, validations } = await measuredLog(log, from, { ...end, position: window.last });
  const term = holderOf(window.last, stretches);
  const bytes = encodeRecord(chunkOf({ runId: log.runId, term }, iterations, validations));
  return bytes.byteLength > largestChunkBytes ? 'too large' : log.store.create(key, bytes);
}

async function awaitsValidation(log: RunLog, { position, termRecord }: LogEnd): Promise<boolean> {
  const isDue = await log.evaluations.dueCheck(termRecord.revision);
  return isDue(position) && (await log.evaluations.at(position)) === undefined;
}

/** The last iteration of the newest chunk of a term; undefined without one. A file of another origin may say less. */
export async function newestInChunks({ store, runId }: RunLog, term: number): Promise<number | undefined> {
  const named = (await store.children(keys.metricChunks(runId))).map((name) => metricChunkIn(name));
  const ends = named.flatMap((chunk) => (chunk?.term === term ? [chunk.last] : []));
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** The terms of the log, newest first, and the position where it begins. */
async function wholeLog(log: RunLog, { termRecord }: LogEnd): Promise<{ stretches: Stretch[]; begin: number }> {
  const stretches: Stretch[] = [];
  for await (const stretch of log.stretches(termRecord)) stretches.push(stretch);
  return { stretches, begin: stretches.at(-1)?.from ?? 0 };
}

/** The term whose folder holds this iteration. `stretches`: newest first. */
const holderOf = (iteration: number, stretches: readonly Stretch[]): number =>
  stretches.find(({ from }) => from < iteration)?.term ?? 1;

const isIn = (iteration: number, { first, last }: Range): boolean => iteration >= first && iteration <= last;

/** Neighbours become one range. */
function joined(ranges: readonly Range[]): Range[] {
  const found: Range[] = [];
  for (const { first, last } of ranges) {
    const before = found.at(-1);
    if (before !== undefined && before.last + 1 === first) found[found.length - 1] = { first: before.first, last };
    else found.push({ first, last });
  }
  return found;
}
