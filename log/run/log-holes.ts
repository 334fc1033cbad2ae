/**
 * Records that are missing although later ones exist. A log that lost its newest records looks like a log that ends
 * earlier, unless an object that was written after them still exists. Listings may lag: an entry that is not listed yet
 * can hide a hole for a while, but a reported hole is always real: another process may have written the record and
 * what follows it after the caller read the head, so a record is lost only if it is still missing now.
 */
import { damage, isDamage, logHole } from '../../core/records/damage.ts';
import type { PauseError } from '../../core/errors.ts';
import { checkpointIn, keys, numberIn } from '../../core/records/keys.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import { highestIn } from '../objects/dense.ts';
import { readRecord } from '../objects/records.ts';
import type { Head, RunLog } from './run-log.ts';

/** The hole at the end of the log; undefined when no later object shows that a record was lost. */
export async function findHole(log: RunLog, head: Head | undefined): Promise<PauseError | undefined> {
  const lost = (await lostTerm(log, head)) ?? (head && (await lostPosition(log, head)));
  if (lost === undefined) return head && brokenChain(log, head);
  return (await log.store.head(lost.key)) === undefined ? lost.hole : undefined;
}

interface LostRecord {
  readonly key: string;
  readonly hole: PauseError;
}

/** Terms are numbered without gaps. When the newest term record is lost, the writer that may append is unknown. */
async function lostTerm(log: RunLog, head: Head | undefined): Promise<LostRecord | undefined> {
  const known = head?.term ?? 0;
  const key = keys.term(log.runId, known + 1);
  for (const term of numbersIn(await log.store.children(keys.terms(log.runId))).filter((n) => n > known)) {
    // A create that was interrupted leaves an empty folder.
    if ((await log.store.children(keys.positions(log.runId, term))).length === 0) continue;
    return { key, hole: damage('MissingRecord', key, `missing, although term ${term} was written to`) };
  }
  return undefined;
}

/** Iteration k + 1 and the validation of k start after update k; a checkpoint of k is written after batch k. */
async function lostPosition(log: RunLog, head: Head): Promise<LostRecord | undefined> {
  const { term, position, pending } = head;
  const next = position + 1;
  const update = keys.update(log.runId, term, next);
  const key = pending === undefined ? keys.batch(log.runId, term, next) : update;
  const holeAt = (lost: string, why: string) => ({ key: lost, hole: logHole(log.runId, position, lost, why) });
  const further = highestIn(await log.store.children(keys.positions(log.runId, term)));
  if (further > next) return holeAt(key, `missing, although iteration ${further} was started`);
  if ((await log.store.head(keys.evaluation(log.runId, term, next))) !== undefined)
    return holeAt(update, `missing, although policy ${next} was validated`);
  const saved = await savedBeyond(log, head);
  return saved === undefined ? undefined : holeAt(key, `missing, although there is a checkpoint of iteration ${saved}`);
}

/**
 * A checkpoint of this term for a later iteration than the log has. Checkpoints of older terms do not count, because
 * their iterations may have been abandoned.
 */
async function savedBeyond(log: RunLog, { term, position, pending }: Head): Promise<number | undefined> {
  const possible = pending === undefined ? position : position + 1;
  for (const name of await log.store.children(keys.checkpoints(log.runId))) {
    const iteration = checkpointIn(name)?.iteration ?? 0;
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
  return logHole(log.runId, position, pending.key, 'its parent is not the record before it');
}

function numbersIn(names: readonly string[]): number[] {
  return names.map(numberIn).filter((n) => n !== undefined);
}
