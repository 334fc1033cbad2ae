/** Reads the terms of a run, and finds the part of each term that belongs to the newest term's log. */
import type { Objects } from './objects.ts';
import { termShape } from './records.ts';
import type { Term } from './records.ts';

/** The positions after `from` up to `until` belong to this term. The newest term has no end. */
export interface Branch {
  readonly term: Term;
  readonly key: string;
  readonly digest: string;
  readonly from: number;
  readonly until: number | undefined;
}

/**
 * A readable term that is not the newest. It begins after `from`; its iterations up to `until` belong to the committed
 * log.
 */
export interface OlderTerm {
  readonly term: number;
  readonly from: number;
  readonly until: number;
}

export interface Terms {
  /** The committed log, oldest branch first. */
  readonly path: readonly Branch[];
  readonly older: readonly OlderTerm[];
  /** Every term that could be read, by number. */
  readonly all: ReadonlyMap<number, Term>;
  readonly newest: number;
}

interface StoredTerm {
  readonly term: Term;
  readonly key: string;
  readonly digest: string;
}

export async function readTerms(objects: Objects, runId: string): Promise<Terms> {
  const all = await readAll(objects, runId);
  for (const stored of all.values()) checkLineage(objects, all, stored);
  const newest = Math.max(0, ...all.keys());
  const path = pathTo(objects, all, newest);
  const older = [...all.values()]
    .filter(({ term }) => term.term !== newest)
    .map(({ term }) => {
      const branch = path.find((one) => one.term.term === term.term);
      return { term: term.term, from: beginOf(term), until: branch?.until ?? beginOf(term) };
    });
  return { path, older, newest, all: new Map([...all].map(([t, { term }]) => [t, term])) };
}

/** Terms are numbered from 1 without gaps. The listing only shows that later terms exist after a hole. */
async function readAll(objects: Objects, runId: string): Promise<Map<number, StoredTerm>> {
  const found = new Map<number, StoredTerm>();
  for (let t = 1; ; t++) {
    const stored = await objects.find(objects.keys.term(t), termShape);
    if (stored.type === 'absent') {
      const more = await termsWithRecords(objects, t);
      const highest = more.at(-1);
      if (highest === undefined) return found;
      objects.faults.add(stored.key, `the record of term ${t}: terms up to ${highest} hold records`, 'nothing');
      t = (more.find((n) => n > t) ?? highest + 1) - 1;
    } else if (stored.type === 'read') {
      checkTerm(objects, runId, t, stored.record, stored.key);
      found.set(t, { term: stored.record, key: stored.key, digest: stored.digest });
    }
  }
}

/**
 * Numbers of the terms from `first` on that hold something, ascending. A folder is made before the term's record, so
 * the last one may be empty.
 */
async function termsWithRecords({ store, keys }: Objects, first: number): Promise<number[]> {
  const listed = (await store.children(keys.terms))
    .map((name) => Number(name.replace('/', '')))
    .filter((t) => Number.isSafeInteger(t) && t >= Math.max(first, 1))
    .sort((a, b) => a - b);
  const held = await Promise.all(listed.map(async (t) => (await store.list(`${keys.terms}${t}/`)).length > 0));
  return listed.filter((_, i) => held[i]);
}

function checkTerm({ faults }: Objects, runId: string, t: number, term: Term, key: string): void {
  faults.equal(key, 'runId', runId, term.runId);
  faults.equal(key, 'term', t, term.term);
  if (t === 1 && term.parent !== undefined)
    faults.add(key, 'no parent: it is the first term', `term ${term.parent.term}`);
  if (t > 1 && term.base !== undefined)
    faults.add(key, 'no base: only the first term of a fork has one', `position ${term.base.position}`);
  for (const [start = 0, end = 0] of term.skippedDraws)
    if (start >= end) faults.add(key, 'ranges of draws to skip', `from ${start} to ${end}`);
  const { adopts } = term;
  if (adopts !== undefined && (adopts.term >= t || adopts.until <= beginOf(term)))
    faults.add(
      key,
      `an older term to adopt batches from, and a last one after position ${beginOf(term)}`,
      `term ${adopts.term} up to ${adopts.until}`,
    );
  if (t > 1 && !(term.parent !== undefined && term.parent.term < t))
    faults.add(key, 'an older term as parent', String(term.parent?.term));
}

/**
 * Readers of the log trust the lineage of a term and do not read its parents, so both must agree. Older terms have no
 * lineage.
 */
function checkLineage({ faults }: Objects, all: ReadonlyMap<number, StoredTerm>, { term, key }: StoredTerm): void {
  if (term.lineage === undefined) return;
  const expected: number[][] = [];
  let parent = term.parent === undefined ? undefined : all.get(term.parent.term);
  while (parent !== undefined && expected.length < all.size) {
    expected.push([parent.term.term, beginOf(parent.term), parent.term.revision ?? 1]);
    parent = parent.term.parent === undefined ? undefined : all.get(parent.term.parent.term);
  }
  faults.equal(key, 'lineage', JSON.stringify(expected), JSON.stringify(term.lineage));
}

/** A fork starts at its origin's position. */
export const beginOf = ({ parent, base }: Term): number => parent?.position ?? base?.position ?? 0;

/**
 * Walks from the newest term back along the parents. A parent belongs to the log up to the position that its child
 * builds on.
 */
function pathTo(objects: Objects, all: ReadonlyMap<number, StoredTerm>, newest: number): Branch[] {
  const path: Branch[] = [];
  let stored = all.get(newest);
  let until: number | undefined;
  while (stored !== undefined) {
    const { parent } = stored.term;
    const from = Math.min(beginOf(stored.term), until ?? Number.POSITIVE_INFINITY);
    path.unshift({ ...stored, from, until });
    if (parent === undefined || parent.term >= stored.term.term) break;
    until = from;
    const before = all.get(parent.term);
    if (before === undefined) objects.faults.add(stored.key, `a parent: term ${parent.term}`, 'none that can be read');
    stored = before;
  }
  return path;
}
