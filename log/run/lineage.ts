/** Which term holds which iterations of a run's log. */
import type { TermRecord } from '../../core/records/schema.ts';

/** The iterations after `from`, up to the start of the next newer stretch, are in the folder of `term`. */
export interface Stretch {
  readonly term: number;
  /** Position where the term starts; its first iteration is the next one. */
  readonly from: number;
  /** The recipe revision of its batches. */
  readonly revision: number;
}

/** The last committed position of a log, and the newest term. */
export interface LogEnd {
  readonly position: number;
  readonly termRecord: TermRecord;
}

/** Position where a term starts; its first iteration is the next one. */
export function beginOf(term: TermRecord): number {
  return term.parent?.position ?? term.base?.position ?? 0;
}

/**
 * The stretches of the log that ends in `newest`, newest first. Records of older petrel versions have no lineage: then
 * parents are read one by one, only as far as the caller iterates. `readTerm` refuses a parent that is not an earlier
 * term.
 */
export async function* stretchesOf(
  newest: TermRecord,
  readTerm: (term: number) => Promise<TermRecord>,
): AsyncGenerator<Stretch> {
  let record = newest;
  for (;;) {
    yield { term: record.term, from: beginOf(record), revision: record.revision };
    if (record.lineage !== undefined) {
      for (const [term, from, revision] of record.lineage) yield { term, from, revision };
      return;
    }
    if (record.parent === undefined) return;
    record = await readTerm(record.parent.term);
  }
}

/** The `lineage` of a new term that continues from an iteration in the folder of term `parent`. */
export async function lineageFrom(
  stretches: AsyncIterable<Stretch>,
  parent: number,
): Promise<NonNullable<TermRecord['lineage']>> {
  const lineage: NonNullable<TermRecord['lineage']> = [];
  for await (const { term, from, revision } of stretches) if (term <= parent) lineage.push([term, from, revision]);
  return lineage;
}
