/**
 * Batches that a term applies again, on other states. Each must repeat, field by field, the batch of the same
 * iteration in the log of the term that it adopts from.
 */
import { actorIn, mapped } from './components.ts';
import { canonicalText } from './canonical.ts';
import type { Objects } from './objects.ts';
import { batchSealShape, batchShape, updateShape } from './records.ts';
import type { Batch, Term } from './records.ts';
import { either } from './shape.ts';
import { beginOf } from './terms.ts';
import { flat } from './chain.ts';
import { show } from './verdict.ts';

/** The batch that is repeated, with the term that holds it and the weights that its samples were drawn from. */
export interface Origin {
  readonly batch: Batch;
  readonly key: string;
  readonly term: Term;
  /** Undefined when the record that contains it cannot be read. */
  readonly weights: string | undefined;
}

type Terms = ReadonlyMap<number, Term>;

const batchOrSeal = either(batchSealShape, batchShape);

/**
 * Undefined for a batch that is not adopted. Also undefined when the repeated batch is damaged or missing, which is a
 * fault.
 */
export async function originOf(
  objects: Objects,
  terms: Terms,
  term: Term,
  batch: Batch,
  key: string,
): Promise<Origin | undefined> {
  const { faults } = objects;
  const k = batch.iteration;
  const holders = holdersOf(terms, term, k);
  const { adopted } = batch;
  if (adopted === undefined) {
    if (holders.length > 0)
      faults.add(key, `the batch of an earlier term: term ${term.term} adopts iteration ${k}`, 'a batch of its own');
    return undefined;
  }
  const holder = holders.find((one) => one.term === adopted.term);
  if (holder === undefined) {
    const expected = holders.map((one) => `term ${one.term}`).join(' or ') || 'no adopted batch';
    faults.add(key, `${expected}, which its term adopts from`, `a batch of term ${adopted.term}`);
    return undefined;
  }
  const found = await objects.find(objects.keys.batch(holder.term, k), batchOrSeal);
  if (found.type === 'absent') faults.add(found.key, `a batch: ${key} repeats it`, 'nothing');
  if (found.type !== 'read') return undefined;
  const origin = found.record;
  faults.equal(key, 'adopted.record, the digest of the batch that it repeats:', found.digest, adopted.record);
  if (origin.decision === 'seal' || origin.adopted !== undefined) {
    const what = origin.decision === 'seal' ? 'a seal' : 'a copy';
    faults.add(found.key, `a batch of its own: ${key} repeats it`, what);
    return undefined;
  }
  checkCopy(objects, origin, batch, key);
  return { batch: origin, key: found.key, term: holder, weights: await weightsBefore(objects, holder, k) };
}

/**
 * The terms that may hold iteration k for a term that adopts it: in each log that it may adopt from, the term to which
 * iteration k belongs.
 */
function holdersOf(terms: Terms, term: Term, k: number): Term[] {
  const holders: Term[] = [];
  for (let at: Term | undefined = term; at !== undefined && adopts(at, k); ) {
    let holder: Term | undefined = terms.get(at.adopts?.term ?? 0);
    while (holder?.parent !== undefined && k <= beginOf(holder)) holder = olderOf(terms, holder);
    if (holder !== undefined) holders.push(holder);
    at = holder;
  }
  return holders;
}

const adopts = (term: Term, k: number): boolean =>
  term.adopts !== undefined && term.adopts.term < term.term && k > beginOf(term) && k <= term.adopts.until;

/** A parent that is not older is reported as a fault of its term. */
function olderOf(terms: Terms, { term, parent }: Term): Term | undefined {
  return parent !== undefined && parent.term < term ? terms.get(parent.term) : undefined;
}

const repeated = [
  'runId',
  'iteration',
  'revision',
  'tensors',
  'shards',
  'oldLogProbs',
  'layout',
  'results',
  'baselines',
  'draws',
  'passedOver',
  'metrics',
  'decision',
] as const;

function checkCopy({ faults }: Objects, origin: Batch, copy: Batch, key: string): void {
  for (const field of repeated) {
    const [expected, found] = [canonicalText(origin[field]), canonicalText(copy[field])];
    if (expected !== found)
      faults.add(key, `${field}, as in the batch that it repeats: ${show(expected)}`, show(found));
  }
  const settings = ({ components }: Batch) =>
    canonicalText(mapped(components, ({ profile: _, ...trained }) => trained));
  faults.equal(key, 'components, as in the batch that it repeats:', settings(origin), settings(copy));
  for (const side of ['before', 'after'] as const) {
    const [{ badSteps: _, ...expected }, { badSteps: __, ...found }] = [flat(origin[side]), flat(copy[side])];
    for (const counter of Object.keys(expected))
      faults.equal(key, `${side}.${counter} of the batch that it repeats:`, expected[counter], found[counter]);
  }
}

/** The weights that iteration k was sampled with. */
async function weightsBefore(objects: Objects, term: Term, k: number): Promise<string | undefined> {
  if (k - 1 === beginOf(term)) return actorIn(term.components)?.weightsDigest;
  const update = await objects.find(objects.keys.update(term.term, k - 1), updateShape);
  return update.type === 'read' ? actorIn(update.record.components)?.weightsDigest : undefined;
}
