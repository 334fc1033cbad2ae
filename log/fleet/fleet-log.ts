/**
 * The records of a stack's fleet (core/fleet/records.ts). Entries never change, so each is read once. What other
 * processes have added is seen after `refresh`: a pass asks the store once, and plans with what it has seen. Callers
 * may read at the same time, and while another one writes: whoever reads after a write sees it, also when an earlier
 * read ends later.
 */
import type { z } from 'zod';
import { RetryableError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import {
  endedRecord,
  fleetRecord,
  joinedRecord,
  launchAnswerRecord,
  launchRecord,
  leavingRecord,
  readyRecord,
  usageRecord,
} from '../../core/fleet/records.ts';
import type {
  EndedRecord,
  FleetRecord,
  JoinedRecord,
  LaunchAnswerRecord,
  LaunchRecord,
  LeavingRecord,
  ReadyRecord,
  UsageRecord,
} from '../../core/fleet/records.ts';
import { folderName, keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import { newestOf } from '../objects/dense.ts';
import { encodeRecord, needRecord, readRecord } from '../objects/records.ts';

/** A launch, and what the provider answered; absent: nobody knows yet. */
export interface KnownLaunch {
  readonly record: LaunchRecord;
  readonly answer?: LaunchAnswerRecord;
}

/** All that the store knows of an instance. */
export interface KnownInstance {
  readonly id: string;
  readonly launch: LaunchRecord;
  /** ISO time. */
  readonly launchedAt: string;
  readonly joined?: JoinedRecord | undefined;
  readonly ready?: ReadyRecord | undefined;
  readonly leaving?: LeavingRecord | undefined;
  readonly ended?: EndedRecord | undefined;
}

type Unstamped<T> = Omit<T, 'format'>;

export class FleetLog {
  readonly store: Store;
  readonly stack: string;
  #wanted: FleetRecord | undefined;
  readonly #launches = new Map<string, readonly KnownLaunch[]>();
  /** Records of instances by key. */
  readonly #facts = new Map<string, unknown>();
  readonly #usage = new Map<string, UsageRecord['spans']>();
  /** Instances of which nothing more comes. */
  readonly #ended = new Map<string, KnownInstance>();
  /** Reads since `refresh` that no write has followed: of pools, and of instances that had not ended. */
  readonly #launchReads = new Map<string, Promise<readonly KnownLaunch[]>>();
  readonly #instanceReads = new Map<string, Promise<KnownInstance>>();

  constructor(store: Store, stack: string) {
    this.store = store;
    this.stack = stack;
  }

  /** Reads the log again, to show what others have written. */
  refresh(): void {
    this.#launchReads.clear();
    this.#instanceReads.clear();
  }

  /** What people want; undefined before the first `petrel fleet apply`. */
  async wanted(): Promise<FleetRecord | undefined> {
    const known = this.#wanted?.n ?? 0;
    const n = await newestOf(this.store, (index) => keys.fleet(this.stack, index), known);
    if (n > known) this.#wanted = (await needRecord(this.store, keys.fleet(this.stack, n), fleetRecord)).record;
    return this.#wanted;
  }

  /**
   * Appends what `change` makes of the newest entry; tries again when another writer was faster. `change` may throw.
   */
  async want(
    change: (last: FleetRecord | undefined) => Pick<FleetRecord, 'spec' | 'scale' | 'drained'>,
    at: Date,
  ): Promise<FleetRecord> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const last = await this.wanted();
      const record = { format: recordFormat, n: (last?.n ?? 0) + 1, at: at.toISOString(), ...change(last) } as const;
      const created = await this.store.create(keys.fleet(this.stack, record.n), encodeRecord(record));
      if (created === 'created') return record;
    }
    throw new RetryableError('FleetContention', 'too many writers change the fleet at the same time');
  }

  /** Pools of which instances were ever launched. */
  async launchedPools(): Promise<string[]> {
    return (await this.store.children(keys.launchedPools(this.stack))).map(folderName);
  }

  /** All launches of a pool, oldest first. */
  launches(pool: string): Promise<readonly KnownLaunch[]> {
    return readOnce(this.#launchReads, pool, () => this.#readLaunches(pool));
  }

  async #readLaunches(pool: string): Promise<readonly KnownLaunch[]> {
    const known = this.#launches.get(pool) ?? [];
    const newest = await newestOf(this.store, (n) => keys.launch(this.stack, pool, n), known.length);
    const all: KnownLaunch[] = [];
    for (let n = 1; n <= newest; n++) {
      const before = known[n - 1];
      if (before?.answer !== undefined) {
        all.push(before);
        continue;
      }
      const record = before?.record ?? (await this.#readLaunch(pool, n));
      const answer = await readRecord(this.store, keys.launchAnswer(this.stack, pool, n), launchAnswerRecord);
      all.push({ record, ...(answer && { answer: answer.record }) });
    }
    this.#launches.set(pool, all);
    return all;
  }

  async #readLaunch(pool: string, n: number): Promise<LaunchRecord> {
    return (await needRecord(this.store, keys.launch(this.stack, pool, n), launchRecord)).record;
  }

  /** False when another writer has decided this launch. */
  async decideLaunch(launch: Unstamped<LaunchRecord>): Promise<boolean> {
    const record: LaunchRecord = { format: recordFormat, ...launch };
    const decided = await this.#create(keys.launch(this.stack, launch.pool, launch.n), record, 'launch');
    this.#launchReads.delete(launch.pool);
    return decided;
  }

  /** The first answer is valid: the same token gives the same instances. */
  async answerLaunch(answer: Unstamped<LaunchAnswerRecord>): Promise<void> {
    const record: LaunchAnswerRecord = { format: recordFormat, ...answer };
    await this.#create(keys.launchAnswer(this.stack, answer.pool, answer.n), record, 'answer');
    this.#launchReads.delete(answer.pool);
  }

  /** All instances of launches that were answered, in the order of the pools' names. */
  async instances(): Promise<KnownInstance[]> {
    const pools = await this.launchedPools();
    const launches = (await Promise.all(pools.sort().map((pool) => this.launches(pool)))).flat();
    const found = launches.flatMap(({ record, answer }) =>
      (answer?.instances ?? []).map(({ id, launchedAt }) => ({ id, launchedAt, launch: record })),
    );
    return Promise.all(found.map((one) => this.#known(one)));
  }

  #known(one: Pick<KnownInstance, 'id' | 'launch' | 'launchedAt'>): Promise<KnownInstance> {
    const ended = this.#ended.get(one.id);
    if (ended !== undefined) return Promise.resolve(ended);
    return readOnce(this.#instanceReads, one.id, () => this.#readInstance(one));
  }

  async #readInstance(one: Pick<KnownInstance, 'id' | 'launch' | 'launchedAt'>): Promise<KnownInstance> {
    // What comes last is read first, so that nothing that came before it is missed.
    const ended = await this.ended(one.id);
    const [joined, ready, leaving] = await Promise.all([this.joined(one.id), this.ready(one.id), this.leaving(one.id)]);
    const known = { ...one, joined, ready, leaving, ended };
    if (ended !== undefined) this.#ended.set(one.id, known);
    return known;
  }

  joined(id: string): Promise<JoinedRecord | undefined> {
    return this.#fact(keys.instanceJoined(this.stack, id), joinedRecord);
  }

  ready(id: string): Promise<ReadyRecord | undefined> {
    return this.#fact(keys.instanceReady(this.stack, id), readyRecord);
  }

  leaving(id: string): Promise<LeavingRecord | undefined> {
    return this.#fact(keys.instanceLeaving(this.stack, id), leavingRecord);
  }

  ended(id: string): Promise<EndedRecord | undefined> {
    return this.#fact(keys.instanceEnded(this.stack, id), endedRecord);
  }

  /** The valid record: the first one. */
  async noteJoined(record: Unstamped<JoinedRecord>): Promise<JoinedRecord> {
    const key = keys.instanceJoined(this.stack, record.id);
    await this.#create(key, { format: recordFormat, ...record }, 'joined');
    this.#instanceReads.delete(record.id);
    return (await needRecord(this.store, key, joinedRecord)).record;
  }

  async noteReady(record: Unstamped<ReadyRecord>): Promise<void> {
    await this.#note(record.id, keys.instanceReady(this.stack, record.id), record, 'ready');
  }

  /** True when this call decided it. */
  noteLeaving(record: Unstamped<LeavingRecord>): Promise<boolean> {
    return this.#note(record.id, keys.instanceLeaving(this.stack, record.id), record, 'leaving');
  }

  /** True when this call decided it. */
  noteEnded(record: Unstamped<EndedRecord>): Promise<boolean> {
    return this.#note(record.id, keys.instanceEnded(this.stack, record.id), record, 'ended');
  }

  /** What machines did, by whoever noticed it. `day`: ISO date. */
  async noteUsage(name: string, spans: UsageRecord['spans'], at: Date): Promise<void> {
    const key = keys.usage(this.stack, at.toISOString().slice(0, 10), name);
    await this.store.create(key, encodeRecord({ format: recordFormat, spans }));
  }

  /** All that is noted; each record is read once. */
  async usage(): Promise<UsageRecord['spans']> {
    for (const day of (await this.store.children(keys.usageDays(this.stack))).map(folderName))
      for (const name of await this.store.children(keys.usages(this.stack, day))) {
        const key = `${keys.usages(this.stack, day)}${name}`;
        if (this.#usage.has(key)) continue;
        this.#usage.set(key, (await needRecord(this.store, key, usageRecord)).record.spans);
      }
    return [...this.#usage.values()].flat();
  }

  async #fact<S extends z.ZodType>(key: string, schema: S): Promise<z.infer<S> | undefined> {
    const known = this.#facts.get(key) ?? (await readRecord(this.store, key, schema))?.record;
    if (known !== undefined) this.#facts.set(key, known);
    return known as z.infer<S> | undefined;
  }

  async #note(id: string, key: string, record: object, kind: string): Promise<boolean> {
    const decided = await this.#create(key, { format: recordFormat, ...record }, kind);
    this.#instanceReads.delete(id);
    return decided;
  }

  async #create(key: string, record: object, kind: string): Promise<boolean> {
    const facts = { kind, runId: '', iteration: 0 };
    faultPoint('decide.before', facts);
    const outcome = await this.store.create(key, encodeRecord(record));
    faultPoint('decide.after', facts);
    return outcome === 'created';
  }
}

/** A read that fails is not kept. */
function readOnce<T>(reads: Map<string, Promise<T>>, name: string, read: () => Promise<T>): Promise<T> {
  const before = reads.get(name);
  if (before !== undefined) return before;
  const reading = read();
  reads.set(name, reading);
  reading.catch(() => {
    if (reads.get(name) === reading) reads.delete(name);
  });
  return reading;
}
