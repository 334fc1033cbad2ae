/**
 * Checks the links of the log: each record names the record before it, and the state and counters after that record.
 */
import type { Iteration } from './iterations.ts';
import type { Found, Objects } from './objects.ts';
import { canonicalText } from './canonical.ts';
import { digestOfBytes } from './objects.ts';
import { equalComponents, equalNames, runState } from './components.ts';
import type { Components } from './components.ts';
import type { Batch, LedgerCounters, Update } from './records.ts';
import type { Branch } from './terms.ts';
import { show } from './verdict.ts';

/** What is known at a position. A part is undefined when damage hides it. */
export interface Standing {
  readonly position: number;
  /** Digest of the record that ends at this position. */
  readonly digest: string | undefined;
  readonly state: string | undefined;
  readonly components: Components | undefined;
  readonly counters: LedgerCounters | undefined;
}

/** The position before the first term: a fork takes over the counters of its origin. */
export function beforeFirst(first: Branch | undefined): Standing {
  const base = first?.term.base;
  return base === undefined ? beforeAll : { ...beforeAll, ...base };
}

const beforeAll: Standing = {
  position: 0,
  digest: undefined,
  state: undefined,
  components: undefined,
  counters: { cursor: 0, badSteps: 0, optimizerSteps: {}, controllers: { klCoef: 0 } },
};

/** A term continues from the state at its parent's position, or from that of a standby (standbys.ts). */
export function beginTerm({ faults }: Objects, { term, key, digest, from }: Branch, before: Standing): Standing {
  faults.equal(key, 'a parent position that is committed:', before.position, from);
  if (term.parent !== undefined && before.digest !== undefined)
    faults.equal(key, 'parent.record, the digest of the record at that position:', before.digest, term.parent.record);
  const isOfLog = term.standby === undefined;
  if (before.state !== undefined && isOfLog)
    faults.equal(key, `startState, the state at position ${from}:`, before.state, term.startState);
  faults.equal(key, 'startState, that of its components:', runState(term.components), term.startState);
  if (before.components !== undefined && isOfLog)
    equalComponents(faults, key, `at position ${from}`, before.components, term.components);
  const { startState: state, components } = term;
  return { position: from, digest, state, components, counters: before.counters };
}

/** Checks an iteration against the position before it. Returns what is known after it. */
export function follow(
  objects: Objects,
  runId: string,
  branch: Branch,
  before: Standing,
  { k, batch, update }: Iteration,
): Standing {
  const after: Standing = {
    position: k,
    digest: undefined,
    state: undefined,
    components: undefined,
    counters: undefined,
  };
  const known = before.position === k - 1 ? before : { ...after, position: k - 1 };
  if (batch.type === 'read') checkBatch(objects, runId, branch, known, k, batch.record, batch.key);
  if (update.type === 'absent') return before;
  if (batch.type === 'absent') objects.faults.add(batch.key, 'the batch record that the update applies', 'nothing');
  if (update.type === 'damaged') return { ...after, digest: update.digest };
  checkUpdate(objects, runId, branch, known, k, batch, update.record, update.key);
  const { stateDigest: state, components, after: counters } = update.record;
  return { position: k, digest: update.digest, state, components, counters };
}

function checkBatch(
  { faults }: Objects,
  runId: string,
  { term }: Branch,
  before: Standing,
  k: number,
  batch: Batch,
  key: string,
): void {
  checkPlace({ faults }, runId, term.term, k, batch, key);
  if (before.digest !== undefined)
    faults.equal(key, 'parent, the digest of the record before it:', before.digest, batch.parent);
  if (before.state !== undefined) faults.equal(key, 'parentState', before.state, batch.parentState);
  if (before.counters !== undefined) equalCounters({ faults }, key, 'before', before.counters, batch.before);
  equalNames(faults, key, term.components, batch.components);
  faults.equal(key, 'after.badSteps', batch.before.badSteps, batch.after.badSteps);
  for (const [name, { profile, learningRates }] of Object.entries(batch.components)) {
    faults.equal(key, `profile of ${name} in its term:`, term.components[name]?.profile.id, profile);
    const planned = (batch.before.optimizerSteps[name] ?? 0) + learningRates.length;
    faults.equal(key, `after.optimizerSteps.${name}`, planned, batch.after.optimizerSteps[name]);
  }
}

function checkUpdate(
  { faults }: Objects,
  runId: string,
  { term }: Branch,
  before: Standing,
  k: number,
  batch: Found<Batch>,
  update: Update,
  key: string,
): void {
  checkPlace({ faults }, runId, term.term, k, update, key);
  if (batch.type !== 'absent') faults.equal(key, 'batch, the digest of the batch record:', batch.digest, update.batch);
  if (before.state !== undefined) faults.equal(key, 'parentState', before.state, update.parentState);
  checkOutcome({ faults }, before, update, key);
  checkPublications({ faults }, term, before, update, key);
  checkLineage({ faults }, term, before, update, key);
  if (batch.type !== 'read') return;
  checkSteps({ faults }, batch.record, update, key);
  const { badSteps: _, ...planned } = batch.record.after;
  const { badSteps, ...found } = update.after;
  equalCounters({ faults }, key, 'after', planned, found);
  const allowed = badStepsAfter(batch.record, update);
  if (!allowed.includes(badSteps)) faults.add(key, `after.badSteps ${allowed.join(' or ')}`, String(badSteps));
}

/** Only an applied batch changes the state. */
function checkOutcome({ faults }: Pick<Objects, 'faults'>, before: Standing, update: Update, key: string): void {
  const taken = tookStep(update);
  faults.equal(key, 'stateDigest, that of its components:', runState(update.components), update.stateDigest);
  faults.equal(key, 'outcome', taken ? 'applied' : 'skipped', update.outcome);
  if (update.outcome === 'skipped') {
    faults.equal(key, 'the state before it, unchanged:', update.parentState, update.stateDigest);
    if (before.components !== undefined)
      equalComponents(faults, key, 'before it, unchanged', before.components, update.components);
    if (update.reason === undefined) faults.add(key, 'a reason why it was skipped', 'none');
  } else if (update.stateDigest === update.parentState)
    faults.add(key, 'a state other than that of its parent: a step was taken', show(update.stateDigest));
}

/** There is one step for each learning rate, or none at all when the user skipped the batch. */
function checkSteps({ faults }: Pick<Objects, 'faults'>, batch: Batch, update: Update, key: string): void {
  if (batch.decision === 'skip')
    faults.equal(key, 'outcome of a batch that must be skipped:', 'skipped', update.outcome);
  equalNames(faults, key, batch.components, update.components);
  for (const [name, { steps, weightsDigest, publications }] of Object.entries(update.components)) {
    const { learningRates = [] } = batch.components[name] ?? {};
    const leftOut = update.outcome === 'skipped' && steps.length === 0;
    if (!leftOut) faults.equal(key, `optimiser steps of ${name}`, learningRates.length, steps.length);
    steps.forEach(({ lr, gradNorm, taken }, s) => {
      faults.equal(key, `lr of step ${s} of ${name}`, learningRates[s], lr);
      if (taken && typeof gradNorm !== 'number')
        faults.add(key, `a finite gradient norm of step ${s} of ${name}, which was taken`, String(gradNorm));
    });
    if (publications['F32'] !== undefined)
      faults.equal(key, `the F32 publication of ${name}`, weightsDigest, publications['F32']);
  }
}

/**
 * A state of an engine that does not repeat its bits has a name that follows from the state before, the batch, and who
 * applied it. Every other state is named by its content, which its checkpoints show.
 */
function checkLineage(
  { faults }: Pick<Objects, 'faults'>,
  { components: inTerm }: Branch['term'],
  before: Standing,
  { batch, components }: Update,
  key: string,
): void {
  for (const [name, { steps, stateDigest, incarnation }] of Object.entries(components)) {
    const profile = inTerm[name]?.profile;
    const parent = before.components?.[name]?.stateDigest;
    if (profile?.naming !== 'lineage') {
      if (incarnation !== undefined) faults.add(key, `the state of ${name} named by its content`, 'an incarnation');
    } else if (parent !== undefined && steps.some(({ taken }) => taken)) {
      const { id, engine } = profile;
      const lineage = {
        parent,
        batch,
        component: name,
        profile: id,
        engine: engine ?? '',
        incarnation: incarnation ?? '',
      };
      const expected = digestOfBytes(canonicalText({ format: 3, lineage }));
      faults.equal(key, `the state of ${name}, named by its lineage:`, expected, stateDigest);
    } else if (parent !== undefined)
      faults.equal(key, `the state of ${name}, which took no step:`, parent, stateDigest);
  }
}

/** BF16 is of policies that compute in bf16. An update that changes nothing has the publications of the one before. */
function checkPublications(
  { faults }: Pick<Objects, 'faults'>,
  { components: inTerm }: Branch['term'],
  before: Standing,
  { outcome, components }: Update,
  key: string,
): void {
  for (const [name, { publications }] of Object.entries(components)) {
    const compute = inTerm[name]?.profile.compute;
    for (const [format, digest] of Object.entries(publications)) {
      if (format !== 'F32' && !(format === 'BF16' && compute === 'bf16'))
        faults.add(key, `a publication of ${name} that samplers in ${compute ?? 'fp32'} can load`, format);
      const earlier = before.components?.[name]?.publications?.[format];
      if (outcome === 'skipped' && earlier !== undefined)
        faults.equal(key, `the ${format} publication of ${name} before it, unchanged:`, earlier, digest);
    }
  }
}

const tookStep = ({ components }: Update): boolean =>
  Object.values(components).some(({ steps }) => steps.some((step) => step.taken));

/** An optimiser step resets the count of bad steps; a batch that the user skipped does not count. */
function badStepsAfter({ before, components }: Batch, update: Update): readonly number[] {
  if (tookStep(update)) return [0];
  if (Object.values(update.components).some(({ steps }) => steps.length > 0)) return [before.badSteps + 1];
  const planned = Object.values(components).some(({ learningRates }) => learningRates.length > 0);
  return planned ? [before.badSteps] : [before.badSteps, before.badSteps + 1];
}

function checkPlace(
  { faults }: Pick<Objects, 'faults'>,
  runId: string,
  term: number,
  k: number,
  record: Batch | Update,
  key: string,
): void {
  faults.equal(key, 'runId', runId, record.runId);
  faults.equal(key, 'term', term, record.term);
  faults.equal(key, 'iteration', k, record.iteration);
}

function equalCounters(
  { faults }: Pick<Objects, 'faults'>,
  key: string,
  name: string,
  expected: Partial<LedgerCounters>,
  found: Partial<LedgerCounters>,
): void {
  const [wanted, there] = [flat(expected), flat(found)];
  for (const counter of new Set([...Object.keys(wanted), ...Object.keys(there)]))
    faults.equal(key, `${name}.${counter}`, wanted[counter], there[counter]);
}

/** Each counter by its path; a component that has taken no step may be absent. */
export function flat({
  optimizerSteps = {},
  controllers = {},
  ...rest
}: Partial<LedgerCounters>): Readonly<Record<string, unknown>> {
  const inner = (of: string, values: Readonly<Record<string, unknown>>) =>
    Object.entries(values).map(([name, one]) => [`${of}.${name}`, one]);
  const steps = inner('optimizerSteps', optimizerSteps).filter(([, planned]) => planned !== 0);
  const states = inner('controllers', controllers).map(([name, one]) => [
    name,
    typeof one === 'object' ? canonicalText(one) : one,
  ]);
  return { ...rest, ...Object.fromEntries([...steps, ...states]) };
}
