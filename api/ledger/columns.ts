/** Checks metrics in columns: each cell is what a record says. A chunk that is missing is no fault. */
import { canonicalText } from './canonical.ts';
import type { Objects } from './objects.ts';
import { measuredShape, metricChunkShape } from './records.ts';
import type { MetricChunk, Term } from './records.ts';
import type { Of } from './shape.ts';
import { beginOf } from './terms.ts';

type Measured = Of<typeof measuredShape>;
type Columns = MetricChunk['batch'];

/** What a record says. That it is damaged is reported by the check of the log. */
type ReadMeasured = (key: string) => Promise<Measured | 'missing' | 'damaged'>;

/** petrel writes smaller ones; a reader that is told another range than its key says uses no chunk. */
const largestRange = 10_000;

export async function checkColumns(objects: Objects, runId: string, terms: ReadonlyMap<number, Term>): Promise<void> {
  const read = measuredReader(objects);
  for (const name of await objects.store.children(objects.keys.columns)) {
    const key = `${objects.keys.columns}${name}`;
    const [first, last, term] = (/^(\d+)-(\d+)-(\d+)\.json$/.exec(name) ?? []).slice(1).map(Number);
    if (first === undefined || last === undefined || term === undefined) continue; // a file of the user
    // A reader opens only chunks of terms that the log has; a running run may have opened one since they were read.
    if (!terms.has(term)) continue;
    const found = await objects.find(key, metricChunkShape);
    if (found.type !== 'read') continue;
    const chunk = found.record;
    objects.faults.equal(key, 'runId', runId, chunk.runId);
    objects.faults.equal(key, 'term', term, chunk.term);
    objects.faults.equal(key, 'last', last, chunk.last);
    objects.faults.equal(key, 'first', Math.max(first, beginOfLog(terms) + 1), chunk.first);
    if (chunk.last - chunk.first < largestRange) await checkChunk(objects, key, chunk, terms, read);
  }
}

async function checkChunk(
  { faults, keys }: Objects,
  key: string,
  chunk: MetricChunk,
  terms: ReadonlyMap<number, Term>,
  read: ReadMeasured,
): Promise<void> {
  const rows = chunk.last - chunk.first + 1;
  for (const [part, columns, count] of [
    ['batch', chunk.batch, rows],
    ['update', chunk.update, rows],
    ['validations', chunk.validations, chunk.validations.at.length],
  ] as const)
    for (const [name, cells] of Object.entries({ ...columns.metrics, ...columns.timings }))
      faults.equal(key, `cells of ${part} ${name}:`, count, cells.length);
  const compare = async (columns: Columns, row: number, record: string) => {
    const expected = await read(record);
    if (expected === 'missing') faults.add(record, `an object: ${key} repeats what it says`, 'nothing');
    if (expected === 'missing' || expected === 'damaged') return;
    const differs = differenceOf(expected, rowOf(columns, row));
    if (differs !== undefined)
      faults.add(key, `what ${record} says of ${differs.name}: ${differs.expected}`, differs.found);
  };
  for (let k = chunk.first; k <= chunk.last; k++) {
    const holder = holderOf(k, chunk.term, terms);
    await compare(chunk.batch, k - chunk.first, keys.batch(holder, k));
    await compare(chunk.update, k - chunk.first, keys.update(holder, k));
  }
  for (const [row, [term = 0, k = 0]] of chunk.validations.at.entries())
    await compare(chunk.validations, row, keys.evaluation(term, k));
}

/** Two sizes of chunks ask for the same records, one soon after the other. */
const keptRecords = 4096;

function measuredReader({ store }: Objects): ReadMeasured {
  const kept = new Map<string, Awaited<ReturnType<ReadMeasured>>>();
  return async (key) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const bytes = await store.get(key);
    const record = bytes === undefined ? 'missing' : readMeasured(bytes);
    const [oldest] = kept.keys();
    if (kept.size >= keptRecords && oldest !== undefined) kept.delete(oldest);
    kept.set(key, record);
    return record;
  };
}

function readMeasured(bytes: Uint8Array): Measured | 'damaged' {
  try {
    return measuredShape(JSON.parse(new TextDecoder().decode(bytes)), 'record');
  } catch {
    return 'damaged';
  }
}

/** The term whose folder holds iteration k of the log that ends in `term`. */
function holderOf(k: number, term: number, terms: ReadonlyMap<number, Term>): number {
  for (let at = terms.get(term); at !== undefined; at = at.parent && terms.get(at.parent.term))
    if (beginOf(at) < k || at.parent === undefined || at.parent.term >= at.term) return at.term;
  return term;
}

function beginOfLog(terms: ReadonlyMap<number, Term>): number {
  const first = terms.get(1);
  return first === undefined ? 0 : beginOf(first);
}

function rowOf({ metrics, timings }: Columns, row: number): Measured {
  const valuesOf = (table: Columns['metrics']) =>
    Object.fromEntries(
      Object.entries(table).flatMap(([name, cells]) => {
        const cell = cells[row] ?? null;
        return cell === null ? [] : [[name, cell] as const];
      }),
    );
  return { metrics: valuesOf(metrics), timings: valuesOf(timings) };
}

/** The first name whose values differ. */
function differenceOf(
  expected: Measured,
  found: Measured,
): { readonly name: string; readonly expected: string; readonly found: string } | undefined {
  for (const table of ['metrics', 'timings'] as const) {
    if (canonicalText(expected[table]) === canonicalText(found[table])) continue;
    for (const name of new Set([...Object.keys(expected[table]), ...Object.keys(found[table])])) {
      const [a, b] = [expected[table][name], found[table][name]];
      if (!Object.is(a, b)) return { name, expected: String(a ?? 'nothing'), found: String(b ?? 'nothing') };
    }
  }
  return undefined;
}
