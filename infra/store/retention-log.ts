/**
 * The retention entries of a run: a dense sequence in which pins and removals are decided one after the other. A process
 * that needs an earlier position pins it first. When a floor above the position was decided before the pin, the pin is
 * refused; when the pin was decided first, it holds the floor back.
 */
import { randomBytes } from 'node:crypto';
import { damage } from '../../core/damage.ts';
import { RetryableError, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, retentionEntry, toStoredRetention } from '../../core/records/schema.ts';
import type { RetentionEntry, TimedPin } from '../../core/records/schema.ts';
import { newestListed } from './dense.ts';
import { encodeRecord, needRecord } from './records.ts';
import type { RunLog } from './run-log.ts';

/** `orphans: null` forgets them. */
type Change = Partial<Omit<RetentionEntry, 'format' | 'runId' | 'n' | 'at' | 'orphans'>> & {
  readonly orphans?: RetentionEntry['orphans'] | null;
};

/** The newest entry; of a run of which nothing was ever removed, one that says so. */
export async function readRetention({ store, runId }: Pick<RunLog, 'store' | 'runId'>): Promise<RetentionEntry> {
  const n = await newestListed(store, keys.retentions(runId), (i) => keys.retention(runId, i));
  if (n > 0) {
    const { key, record } = await needRecord(store, keys.retention(runId, n), retentionEntry);
    if (record.runId !== runId)
      throw damage('DamagedRecord', key, `expected an entry of ${runId}, found one of ${record.runId}`);
    return record;
  }
  return {
    format: recordFormat,
    runId,
    n: 0,
    at: '',
    floor: 0,
    cleared: 0,
    pins: [],
    marked: [],
    markedAt: '',
    shared: [],
    verified: [],
  };
}

/** Appends what `change` makes of the newest entry, and asks again when another was quicker. Nothing is written for `undefined`. */
export async function changeRetention(
  log: RunLog,
  now: Date,
  change: (entry: RetentionEntry) => Promise<Change | undefined>,
): Promise<RetentionEntry> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const entry = await readRetention(log);
    const changed = await change(entry);
    if (changed === undefined) return entry;
    const { orphans = entry.orphans, ...rest } = changed;
    const { orphans: _before, ...kept } = entry;
    const next: RetentionEntry = {
      ...kept,
      ...rest,
      ...(orphans ? { orphans } : {}),
      n: entry.n + 1,
      at: now.toISOString(),
    };
    if (
      (await log.store.create(keys.retention(log.runId, next.n), encodeRecord(toStoredRetention(next)))) === 'created'
    )
      return next;
  }
  throw new RetryableError('RetentionContention', `${log.runId}: many writers pin or remove at once`);
}

/**
 * Keeps what is needed to go back to `position` until the returned function is called, at the longest for `forMs`.
 * Throws TerminalError `RemovedByRetention`.
 */
export async function pinPosition(
  log: RunLog,
  { position, why, forMs }: { readonly position: number; readonly why: string; readonly forMs: number },
  now: () => Date,
): Promise<() => Promise<void>> {
  const id = randomBytes(6).toString('hex');
  const until = new Date(now().getTime() + forMs).toISOString();
  await changeRetention(log, now(), async ({ floor, pins }) => {
    if (position < floor) throw removedByRetention(log.runId, `what iteration ${position} needs`, floor);
    return { pins: [...pins, { id, position, why, until }] };
  });
  return async () => {
    await changeRetention(log, now(), async ({ pins }) =>
      pins.some((pin) => pin.id === id) ? { pins: pins.filter((pin) => pin.id !== id) } : undefined,
    );
  };
}

/** Pins whose time is not over. */
export function livePins({ pins }: Pick<RetentionEntry, 'pins'>, now: Date): TimedPin[] {
  return pins.filter(({ until }) => new Date(until) > now);
}

/** `what`: "the samples of iteration 3". */
export function removedByRetention(runId: string, what: string, floor: number): TerminalError {
  return new TerminalError(
    'RemovedByRetention',
    `${runId}: ${what} may be gone: retention keeps what follows iteration ${floor}`,
    {
      hint: 'trainer.max_actor_ckpt_to_keep and trainer.keep_batches say what is kept',
    },
  );
}
