/** The run's state as users see it: a dense sequence of small records, of which the newest is valid. */
import { PetrelError, RetryableError, TerminalError, errorToJson } from '../../core/errors.ts';
import { faultPoint } from '../faults/index.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, statusEntry } from '../../core/records/schema.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { DesiredState, RunState } from '../../core/run-states.ts';
import { outOfDateType } from '../../core/wire/workflow.ts';
import { encodeRecord, needRecord } from '../objects/records.ts';
import type { RunLog } from './run-log.ts';

export interface StatusChange {
  readonly wish?: DesiredState;
  /** A person must act first: the desired state `run` becomes `pause`. Other desired states stay. */
  readonly needsPerson?: boolean;
  readonly state?: RunState;
  /**
   * Records the state only while this is the desired state, because the user may have resumed a run that is about to
   * end.
   */
  readonly onlyIf?: DesiredState;
  readonly reason?: unknown;
}

/**
 * Appends an entry; fields that the change does not name keep their values. Writes nothing when nothing changes.
 * `givenUp`: true once the caller's activity has timed out. After a timeout nothing is written, because later writers
 * win. Throws TerminalError `OutOfDate` when `onlyIf` is not the desired state.
 */
export async function appendStatus(
  log: RunLog,
  change: StatusChange,
  at: Date,
  givenUp: () => boolean = () => false,
): Promise<StatusEntry> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const last = await log.status.newest();
    if (givenUp())
      throw new RetryableError(
        'GivenUp',
        `${log.runId}: writing its status took longer than its activity may take; another attempt writes it`,
      );
    if (change.onlyIf !== undefined && change.onlyIf !== last?.wish)
      throw new TerminalError(
        outOfDateType,
        `${log.runId} is not recorded as ${change.state}: its desired state is ${last?.wish} by now, not ${change.onlyIf}`,
      );
    const entry: StatusEntry = {
      format: recordFormat,
      runId: log.runId,
      n: (last?.n ?? 0) + 1,
      at: at.toISOString(),
      wish: change.wish ?? desiredAfter(last?.wish ?? 'run', change.needsPerson),
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

/** How many times the run was paused for this reason with the same `where`. */
export async function pausesFor(log: RunLog, code: string, where: string): Promise<number> {
  const newest = (await log.status.newest())?.n ?? 0;
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

const desiredAfter = (last: DesiredState, needsPerson: boolean | undefined): DesiredState =>
  needsPerson === true && last === 'run' ? 'pause' : last;

/** A new reason replaces the old one; a healthy state removes it. */
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
