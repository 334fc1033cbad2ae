/**
 * The retention entries of a run: a dense sequence in which pins and removals are decided one after the other. A
 * process that needs an earlier position pins it first. If a floor above the position was decided before the pin, the
 * pin is refused. If the pin was decided first, the floor stays at or below it.
 */
import { randomBytes } from 'node:crypto';
import { damage } from '../../core/records/damage.ts';
import { RetryableError, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, retentionEntry, toStoredRetention } from '../../core/records/schema.ts';
import type { RetentionEntry, TimedPin } from '../../core/records/schema.ts';
import { newestListed } from '../objects/dense.ts';
import { encodeRecord, needRecord } from '../objects/records.ts';
import type { RunLog } from './run-log.ts';

/** `orphans: null` clears the list. */
type Change = Partial<Omit<RetentionEntry, 'format' | 'runId' | 'n' | 'at' | 'orphans'>> & {
  readonly orphans?: RetentionEntry['orphans'] | null;
};

/** The newest entry, or an initial one for a run of which nothing was ever removed. */
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

/**
 * Appends the entry that `change` derives from the newest one; retries when another writer was faster. Writes nothing
 * when `change` returns undefined.
 */
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
  throw new RetryableError('RetentionContention', `${log.runId}: too many writers pin or remove at the same time`);
}

/**
 * Keeps everything that going back to `position` needs, until the returned function is called, or for `forMs` at most.
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

/** Pins that have not expired. */
export function livePins({ pins }: Pick<RetentionEntry, 'pins'>, now: Date): TimedPin[] {
  return pins.filter(({ until }) => new Date(until) > now);
}

/** `what`: "the samples of iteration 3". */
export function removedByRetention(runId: string, what: string, floor: number): TerminalError {
  return new TerminalError(
    'RemovedByRetention',
    `${runId}: ${what} may have been removed: retention keeps only what follows iteration ${floor}`,
    {
      hint: 'trainer.max_actor_ckpt_to_keep and trainer.keep_batches decide what is kept',
    },
  );
}
