/**
 * Reads the batch and update records of a branch, one position at a time. Holes, and records after a seal, are faults.
 */
import { digestOfBytes } from './objects.ts';
import type { Found, Objects } from './objects.ts';
import { batchSealShape, batchShape, updateSealShape, updateShape } from './records.ts';
import type { Batch, Update } from './records.ts';
import { either } from './shape.ts';
import type { Of } from './shape.ts';
import type { Branch, OlderTerm } from './terms.ts';
import type { AbandonedBranch } from './verdict.ts';

export interface Iteration {
  readonly k: number;
  readonly batch: Found<Batch>;
  readonly update: Found<Update>;
}

/** What is at a position: an iteration, or the end of the term. */
interface Position {
  readonly k: number;
  readonly batch: Found<Of<typeof batchSealShape> | Batch>;
  readonly update: Found<Of<typeof updateSealShape> | Update>;
}

const batchOrSeal = either(batchSealShape, batchShape);
const updateOrSeal = either(updateSealShape, updateShape);

export async function* iterationsOf(objects: Objects, branch: Branch): AsyncGenerator<Iteration> {
  const t = branch.term.term;
  // This is read before the walk, because a running run appends during the walk. Its new records are no fault.
  const listed = await positionsOf(objects, t);
  for (let k = branch.from + 1; k <= (branch.until ?? Number.POSITIVE_INFINITY); k++) {
    const iteration = await readIteration(objects, t, k);
    const { batch, update } = iteration;
    if (batch.type === 'absent' && update.type === 'absent') {
      const next = await jumpTo(objects, branch, k, listed);
      if (next === undefined) return;
      k = next - 1;
    } else if (!isOpen(iteration)) {
      if (branch.until !== undefined)
        objects.faults.add(
          batch.key,
          `no seal before position ${branch.until}, on which a later term builds`,
          `a seal at position ${k}`,
        );
      return await nothingAfter(objects, t, iteration, listed);
    } else {
      yield iteration;
      if (update.type === 'absent' && (await jumpTo(objects, branch, k, listed)) === undefined) return;
    }
  }
}

/**
 * Iterations of older terms after the position that a later term builds on. Such a term must be sealed, so that nothing
 * can be appended to it.
 */
export async function abandonedAfter(objects: Objects, { term, from, until }: OlderTerm): Promise<AbandonedBranch> {
  let iterations = 0;
  for (let k = until + 1; ; k++) {
    const iteration = await readIteration(objects, term, k);
    if (!isOpen(iteration)) {
      await checkSeal(objects, term, from, iteration);
      return { term, from: until + 1, iterations };
    }
    if (iteration.update.type === 'absent') {
      const free = iteration.batch.type === 'absent' ? iteration.batch.key : iteration.update.key;
      objects.faults.add(free, `a seal that closes term ${term}: a later term is open`, 'nothing');
      return { term, from: until + 1, iterations };
    }
    iterations++;
  }
}

async function readIteration(objects: Objects, t: number, k: number): Promise<Position> {
  const batch = await objects.find(objects.keys.batch(t, k), batchOrSeal);
  const update = await objects.find(objects.keys.update(t, k), updateOrSeal);
  // Both records may have been written between the two reads.
  const again = batch.type === 'absent' && update.type !== 'absent';
  return { k, batch: again ? await objects.find(batch.key, batchOrSeal) : batch, update };
}

/** No seal closes the term at this position. */
function isOpen(position: Position): position is Iteration {
  const { batch, update } = position;
  return (
    !(batch.type === 'read' && batch.record.decision === 'seal') &&
    !(update.type === 'read' && update.record.outcome === 'seal')
  );
}

async function positionsOf(objects: Objects, t: number): Promise<number[]> {
  const names = await objects.store.children(objects.keys.positions(t));
  return names
    .map((name) => Number(name.replace('/', '')))
    .filter((k) => Number.isSafeInteger(k) && k >= 1)
    .sort((a, b) => a - b);
}

const isThere = async (objects: Objects, t: number, k: number) =>
  (await objects.size(objects.keys.batch(t, k))) !== undefined ||
  (await objects.size(objects.keys.update(t, k))) !== undefined;

/**
 * The next position that holds a decision although position k has no batch or no update, which is a hole. Undefined
 * where the branch ends.
 */
async function jumpTo(
  objects: Objects,
  { term: { term: t }, until }: Branch,
  k: number,
  listed: readonly number[],
): Promise<number | undefined> {
  const missing =
    (await objects.size(objects.keys.batch(t, k))) === undefined ? objects.keys.batch(t, k) : objects.keys.update(t, k);
  for (const next of listed) {
    if (next <= k || next > (until ?? Number.POSITIVE_INFINITY) || !(await isThere(objects, t, next))) continue;
    objects.faults.add(missing, `a record: the log continues at position ${next}`, 'nothing');
    return next;
  }
  if (until !== undefined) objects.faults.add(missing, `a record: a later term builds on position ${until}`, 'nothing');
  return undefined;
}

/**
 * The parent of a seal is the record that it closes: the batch that waits, the update before it, or the term itself.
 */
async function checkSeal(objects: Objects, t: number, from: number, { k, batch, update }: Position): Promise<void> {
  const [seal, closed] =
    batch.type === 'read' && 'owner' in batch.record
      ? [batch, k - 1 === from ? objects.keys.term(t) : objects.keys.update(t, k - 1)]
      : [update, batch.key];
  if (seal.type !== 'read' || !('owner' in seal.record)) return;
  objects.faults.equal(seal.key, 'term', t, seal.record.term);
  objects.faults.equal(seal.key, 'iteration', k, seal.record.iteration);
  const bytes = await objects.get(closed);
  if (bytes !== undefined)
    objects.faults.equal(
      seal.key,
      'parent, the digest of the record before it:',
      digestOfBytes(bytes),
      seal.record.parent,
    );
}

async function nothingAfter(
  objects: Objects,
  t: number,
  { k, batch, update }: Position,
  listed: readonly number[],
): Promise<void> {
  const seal = batch.type === 'read' && batch.record.decision === 'seal' ? batch.key : update.key;
  if (seal === batch.key && update.type !== 'absent')
    objects.faults.add(update.key, `nothing after the seal ${seal}`, 'an update record');
  for (const later of new Set([k + 1, ...listed.filter((one) => one > k)])) {
    if (await isThere(objects, t, later))
      objects.faults.add(
        objects.keys.batch(t, later),
        `nothing after the seal ${seal}`,
        `records at position ${later}`,
      );
  }
}
