/** The run's state as people see it: a dense sequence of small records, the newest counts. */
import { PetrelError, RetryableError, errorToJson } from '../../core/errors.ts';
import { faultPoint } from '../faults/index.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, statusEntry } from '../../core/records/schema.ts';
import type { RunState, StatusEntry, Wish } from '../../core/records/schema.ts';
import { encodeRecord, needRecord } from './records.ts';
import type { RunLog } from './run-log.ts';

export interface StatusChange {
  readonly wish?: Wish;
  /** A wish to run becomes one to pause: a person must act first. Other wishes stay. */
  readonly hold?: boolean;
  readonly state?: RunState;
  readonly reason?: unknown;
}

/**
 * Appends an entry that takes over what the change does not name. Nothing is written when nothing changes. A writer that
 * was `givenUp` appends only to what it read before that: whoever did its work, and what its owner wished since, count.
 */
export async function appendStatus(
  log: RunLog,
  change: StatusChange,
  at: Date,
  givenUp: () => boolean = () => false,
): Promise<StatusEntry> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const last = await log.status();
    if (givenUp())
      throw new RetryableError(
        'GivenUp',
        `${log.runId}: its status was to be written by now, and is left to whoever was asked since`,
      );
    const entry: StatusEntry = {
      format: recordFormat,
      runId: log.runId,
      n: (last?.n ?? 0) + 1,
      at: at.toISOString(),
      wish: change.wish ?? wishAfter(last?.wish ?? 'run', change.hold),
      state: change.state ?? last?.state ?? 'queued',
      ...reasonOf(change, last),
    };
    if (last !== undefined && sameStatus(last, entry)) return last;
    const facts = { kind: 'status', runId: log.runId, iteration: entry.n, state: entry.state };
    faultPoint('decide.before', facts);
    const outcome = await log.store.create(keys.status(log.runId, entry.n), encodeRecord(entry));
    faultPoint('decide.after', facts);
    if (outcome === 'created') return entry;
  }
  throw new RetryableError('StatusContention', `${log.runId}: many writers change its status at once`);
}

/** How many times the run was paused for this reason at this place. */
export async function pausesFor(log: RunLog, code: string, where: string): Promise<number> {
  const newest = (await log.status())?.n ?? 0;
  let pauses = 0;
  for (let n = 1; n <= newest; n++) {
    const { record } = await needRecord(log.store, keys.status(log.runId, n), statusEntry);
    if (
      record.state === 'paused' &&
      record.wish === 'pause' &&
      record.reason?.code === code &&
      record.reason.where === where
    )
      pauses += 1;
  }
  return pauses;
}

const wishAfter = (last: Wish, hold: boolean | undefined): Wish => (hold === true && last === 'run' ? 'pause' : last);

/** A new reason replaces the old; a state of good health drops it. */
function reasonOf(change: StatusChange, last: StatusEntry | undefined): Pick<StatusEntry, 'reason'> {
  if (change.reason !== undefined)
    return { reason: change.reason instanceof PetrelError ? errorToJson(change.reason) : toReason(change.reason) };
  const healthy = change.state === undefined ? false : change.state !== 'paused' && change.state !== 'failed';
  return last?.reason === undefined || healthy ? {} : { reason: last.reason };
}

function toReason(reason: unknown): NonNullable<StatusEntry['reason']> {
  if (typeof reason === 'object' && reason !== null && 'code' in reason && 'message' in reason) {
    return {
      code: String(reason.code),
      message: String(reason.message),
      ...('hint' in reason && typeof reason.hint === 'string' ? { hint: reason.hint } : {}),
      ...('where' in reason && typeof reason.where === 'string' ? { where: reason.where } : {}),
    };
  }
  return errorToJson(reason);
}

function sameStatus(a: StatusEntry, b: StatusEntry): boolean {
  return a.wish === b.wish && a.state === b.state && JSON.stringify(a.reason) === JSON.stringify(b.reason);
}
