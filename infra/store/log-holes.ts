/**
 * Records that must be there because later ones are. A log that lost its newest records looks like one that ends earlier,
 * unless something that was written after them tells of them. Listings are hints: a missing entry hides a hole for a while
 * and makes none.
 */
import { damage, isDamage, logHole } from '../../core/damage.ts';
import type { PauseError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import { readRecord } from './records.ts';
import type { Head, RunLog } from './run-log.ts';

/** What is wrong with the end of the log; undefined when nothing tells of a loss. */
export async function findHole(log: RunLog, head: Head | undefined): Promise<PauseError | undefined> {
  return (await lostTerm(log, head)) ?? (head && ((await lostPosition(log, head)) ?? brokenChain(log, head)));
}

/** Terms are numbered without gaps: a higher one without its predecessor means that who may append is not known. */
async function lostTerm(log: RunLog, head: Head | undefined): Promise<PauseError | undefined> {
  const known = head?.term ?? 0;
  for (const term of numbersIn(await log.store.children(keys.terms(log.runId))).filter((n) => n > known)) {
    // A folder without anything in it is a create that was cut off.
    if ((await log.store.children(keys.positions(log.runId, term))).length === 0) continue;
    return damage('MissingRecord', keys.term(log.runId, known + 1), `missing, although term ${term} was written to`);
  }
  return undefined;
}

/** Iteration k + 1 begins when k is committed, and so does its validation; a checkpoint of k needs at least its batch. */
async function lostPosition(log: RunLog, head: Head): Promise<PauseError | undefined> {
  const { term, position, pending } = head;
  const next = position + 1;
  const lost = pending === undefined ? keys.batch(log.runId, term, next) : keys.update(log.runId, term, next);
  const further = Math.max(0, ...numbersIn(await log.store.children(keys.positions(log.runId, term))));
  if (further > next) return logHole(log.runId, position, lost, `missing, although iteration ${further} was begun`);
  if ((await log.store.head(keys.evaluation(log.runId, term, next))) !== undefined) {
    return logHole(
      log.runId,
      position,
      keys.update(log.runId, term, next),
      `missing, although policy ${next} was validated`,
    );
  }
  const saved = await savedBeyond(log, head);
  return saved === undefined
    ? undefined
    : logHole(log.runId, position, lost, `missing, although there is a checkpoint of iteration ${saved}`);
}

/** The newest checkpoint of this term that cannot have been written with a log that ends here. Older terms may have gone further. */
async function savedBeyond(log: RunLog, { term, position, pending }: Head): Promise<number | undefined> {
  const possible = pending === undefined ? position : position + 1;
  for (const name of await log.store.children(keys.checkpoints(log.runId))) {
    const iteration = Number(/^(\d+)-/.exec(name)?.[1] ?? 0);
    if (iteration <= possible) continue;
    const manifest = await readRecord(log.store, keys.checkpoints(log.runId) + name, checkpointManifest).catch(
      (error: unknown) => {
        if (!isDamage(error)) throw error;
      },
    );
    if (manifest?.record.term === term) return iteration;
  }
  return undefined;
}

function brokenChain(log: RunLog, { pending, parent, position, stateDigest }: Head): PauseError | undefined {
  if (pending === undefined || (pending.record.parent === parent && pending.record.parentState === stateDigest))
    return undefined;
  return logHole(log.runId, position, pending.key, 'it does not follow from the record before it');
}

function numbersIn(names: readonly string[]): number[] {
  return names.map((name) => Number(name.replace('/', ''))).filter(Number.isInteger);
}
