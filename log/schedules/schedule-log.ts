/**
 * The records of one schedule: its desired state, and the outcome of each of its times. Entries never change and are
 * read once.
 */
import { endedStates } from '../../core/run-states.ts';
import { RetryableError } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { firingRecord, recordFormat, scheduleRecord } from '../../core/records/schema.ts';
import type { FiringRecord, ScheduleDefinition, ScheduleRecord } from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import type { ScheduleView } from '../../core/schedules/decide.ts';
import { faultPoint } from '../faults/index.ts';
import { newestOf } from '../objects/dense.ts';
import { encodeRecord, needRecord } from '../objects/records.ts';
import { RunLog } from '../run/run-log.ts';

/** What a new entry changes; it keeps the other fields. A changed definition starts a new generation. */
export interface ScheduleChange {
  readonly state: ScheduleRecord['state'];
  readonly note?: string;
  /** The stack that fires the schedule from now on. */
  readonly owner: string;
  readonly definition?: ScheduleDefinition;
}

/** State of a run that a schedule started. `starting`: decided, but its first record is not written yet. */
export type ScheduledRunState = RunState | 'starting' | 'removed';

const isEnded = (state: ScheduledRunState): boolean =>
  state === 'removed' || (state !== 'starting' && endedStates.has(state));
/** Parallel requests to the store. */
const readAtOnce = 16;

export class ScheduleLog {
  readonly store: Store;
  readonly name: string;
  #record: ScheduleRecord | undefined;
  readonly #firings: FiringRecord[] = [];
  /** Newest status by run: the next read only checks for a newer one. */
  readonly #states = new Map<RunId, { readonly n: number; readonly state: ScheduledRunState }>();

  constructor(store: Store, name: string) {
    this.store = store;
    this.name = name;
  }

  /** The newest entry; undefined when there was never one. */
  async record(): Promise<ScheduleRecord | undefined> {
    const known = this.#record?.n ?? 0;
    const n = await newestOf(this.store, (index) => keys.schedule(this.name, index), known);
    if (n > known) this.#record = (await needRecord(this.store, keys.schedule(this.name, n), scheduleRecord)).record;
    return this.#record;
  }

  /** The entry that started a generation. */
  async recordAt(n: number): Promise<ScheduleRecord> {
    return (await needRecord(this.store, keys.schedule(this.name, n), scheduleRecord)).record;
  }

  /** Appends an entry if `last` is still the newest; undefined when another writer was faster. */
  async append(
    last: ScheduleRecord | undefined,
    { state, note, owner, definition }: ScheduleChange,
    at: Date,
  ): Promise<ScheduleRecord | undefined> {
    const kept = definition ?? last?.definition;
    if (kept === undefined) throw new Error('the first entry of a schedule must contain its definition');
    const n = (last?.n ?? 0) + 1;
    const record: ScheduleRecord = {
      format: recordFormat,
      schedule: this.name,
      n,
      at: at.toISOString(),
      state,
      ...(note === undefined ? {} : { note }),
      owner,
      generation: definition === undefined ? (last?.generation ?? n) : n,
      definition: kept,
    };
    return (await this.store.create(keys.schedule(this.name, n), encodeRecord(record))) === 'created'
      ? record
      : undefined;
  }

  /** All entries, oldest first. */
  async entries(): Promise<readonly FiringRecord[]> {
    const newest = await newestOf(this.store, (n) => keys.firing(this.name, n), this.#firings.length);
    while (this.#firings.length < newest) {
      const first = this.#firings.length + 1;
      const count = Math.min(readAtOnce, newest - this.#firings.length);
      const read = await Promise.all(
        Array.from({ length: count }, (_, i) =>
          needRecord(this.store, keys.firing(this.name, first + i), firingRecord),
        ),
      );
      // Another caller may have read the same entries during this read.
      for (const { record } of read) if (record.n === this.#firings.length + 1) this.#firings.push(record);
    }
    return this.#firings;
  }

  /**
   * Appends the outcome of a time, if exactly `after` entries exist, which the decision was based on. False when
   * another writer was first.
   */
  async appendFiring(after: number, firing: Omit<FiringRecord, 'format' | 'schedule' | 'n'>): Promise<boolean> {
    const record: FiringRecord = { format: recordFormat, schedule: this.name, n: after + 1, ...firing };
    const facts = { kind: 'firing', runId: record.runId ?? '', iteration: 0 };
    faultPoint('decide.before', facts);
    const outcome = await this.store.create(keys.firing(this.name, record.n), encodeRecord(record));
    faultPoint('decide.after', facts);
    return outcome === 'created';
  }

  /** The newest entry of each time, in the order of their first entries. */
  async firings(): Promise<readonly FiringRecord[]> {
    return newestOfEach(await this.entries());
  }

  /** Runs that have no recorded outcome yet. A run that has started is not read again. */
  async starting(runIds: readonly RunId[]): Promise<ReadonlySet<RunId>> {
    const unknown = runIds.filter((runId) => !this.#states.has(runId));
    const states = await this.runStates(unknown);
    return new Set(unknown.filter((runId) => states.get(runId) === 'starting'));
  }

  /** All facts that a decision depends on. `after`: number of entries it is based on. */
  async view(): Promise<ScheduleView & { readonly after: number }> {
    const entries = await this.entries();
    const after = entries.length;
    const firings = newestOfEach(entries.slice(0, after));
    const runs = firings.flatMap(({ runId }) => runId ?? []);
    const states = await this.runStates(runs);
    return {
      record: await this.record(),
      firings,
      active: runs.filter((runId) => !isEnded(states.get(runId) ?? 'starting')),
      after,
    };
  }

  /** True while nothing has happened that could change a decision to wait. It is cheap, so callers may poll it. */
  async stands(
    { after, record }: { readonly after: number; readonly record: ScheduleRecord | undefined },
    by: readonly RunId[],
  ): Promise<boolean> {
    if ((await this.entries()).length !== after || (await this.record())?.n !== record?.n) return false;
    const states = await this.runStates(by);
    return by.every((runId) => !isEnded(states.get(runId) ?? 'starting'));
  }

  async runStates(runIds: readonly RunId[]): Promise<ReadonlyMap<RunId, ScheduledRunState>> {
    for (let first = 0; first < runIds.length; first += readAtOnce) {
      await Promise.all(runIds.slice(first, first + readAtOnce).map((runId) => this.#look(runId)));
    }
    return new Map(runIds.map((runId) => [runId, this.#states.get(runId)?.state ?? 'starting']));
  }

  async #look(runId: RunId): Promise<void> {
    const known = this.#states.get(runId);
    if (known?.state === 'removed') return;
    const n = await newestOf(this.store, (index) => keys.status(runId, index), known?.n);
    if (known !== undefined && n === known.n) return;
    if (n === 0) {
      // A deleted run has no entries.
      if ((await this.store.head(keys.tombstone(runId))) !== undefined)
        this.#states.set(runId, { n, state: 'removed' });
      return;
    }
    const status = await new RunLog(this.store, runId).status.newest();
    if (status !== undefined) this.#states.set(runId, { n: status.n, state: status.state });
  }
}

/** Names of the schedules in a store, including removed ones. */
export async function listScheduleNames(store: Store): Promise<string[]> {
  return (await store.children(keys.schedules)).filter((name) => name.endsWith('/')).map((name) => name.slice(0, -1));
}

/**
 * Appends an entry derived from the newest one; retries when another writer was faster. `change` may throw to refuse.
 */
export async function changeSchedule(
  log: ScheduleLog,
  change: (last: ScheduleRecord | undefined) => ScheduleChange | undefined,
  at: Date,
): Promise<ScheduleRecord> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const last = await log.record();
    const wanted = change(last);
    if (wanted === undefined && last !== undefined) return last;
    const appended = wanted && (await log.append(last, wanted, at));
    if (appended !== undefined) return appended;
  }
  throw new RetryableError('ScheduleContention', `too many writers change the schedule ${log.name} at the same time`);
}

function newestOfEach(entries: readonly FiringRecord[]): FiringRecord[] {
  const newest = new Map<string, FiringRecord>();
  for (const entry of entries) newest.set(`${entry.generation} ${entry.time}`, entry);
  return [...newest.values()];
}
