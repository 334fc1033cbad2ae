/**
 * The driven runs of a stack of several machines, as objects in its store. A run has a note for each time that a
 * command has started it. Who forgets a run removes only the notes that it knew before it looked at the run's state, so
 * a command that starts the run in between is not lost.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../core/canonical.ts';
import { runIdPattern } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { drivenNote, recordFormat } from '../../core/records/schema.ts';
import type { DrivenNote } from '../../core/records/schema.ts';
import { storeGone } from '../../core/store-gone.ts';
import { openStore } from '../store/open.ts';
import { isPaidByRequest } from '../store/places.ts';
import { encodeRecord, readRecord } from '../../log/objects/records.ts';
import { derivedKey } from './derived-key.ts';
import type { DrivenRun, DrivenRuns, NotedRun } from './driven-run.ts';
import { isAlive, ownIdentity } from './process.ts';
import type { SharedStack } from './servers.ts';

/** A listing of a store that charges for requests is used for so long. */
const paidListingMs = 10_000;
/** Another machine's command starts a run within this time after its note, or has died. */
const startingMs = 120_000;

export class StoreRuns implements DrivenRuns {
  readonly place: string;
  readonly #shared: SharedStack;
  readonly #instance: string;
  readonly #secret: Buffer;
  /** Notes by key, which never change. undefined: the object is no note of this stack. */
  readonly #read = new Map<string, DrivenNote | undefined>();
  /** Runs with their stores, of which it is known that this stack drives them. */
  readonly #driven = new Set<string>();
  /** Keys of this process's notes of runs that it is about to start, by run. */
  readonly #starting = new Map<string, string[]>();
  #store: Promise<Store> | undefined;
  #listed: { readonly at: number; readonly keys: Promise<readonly string[]> } | undefined;

  /** `instance`: of this machine. */
  constructor(shared: SharedStack, instance: string) {
    this.#shared = shared;
    this.#instance = instance;
    this.#secret = derivedKey(shared.key, 'driven runs', 32);
    this.place = `${shared.store}/${keys.drivenRunNotes(shared.name, '<run>')}`;
  }

  async note(run: DrivenRun): Promise<void> {
    await this.#write(run);
    const earlier = this.#starting.get(run.runId) ?? [];
    this.#starting.delete(run.runId);
    await this.#remove(earlier);
  }

  async noteToStart(run: DrivenRun): Promise<void> {
    const { pid, startTime } = ownIdentity();
    const key = await this.#write(run, { pid, startTime });
    this.#starting.set(run.runId, [...(this.#starting.get(run.runId) ?? []), key]);
  }

  /** A positive answer is remembered: a run that has ended is refused by its state. */
  async drives(run: Pick<DrivenRun, 'runId' | 'store'>): Promise<boolean> {
    if (!runIdPattern.test(run.runId)) return false;
    if (this.#driven.has(wordOf(run))) return true;
    const store = await this.#opened();
    const notes = await this.#notes(await store.list(keys.drivenRunNotes(this.#shared.name, run.runId)));
    if (!notes.some((note) => wordOf(note) === wordOf(run))) return false;
    this.#driven.add(wordOf(run));
    return true;
  }

  async all(): Promise<readonly NotedRun[]> {
    const listed = await this.#list();
    for (const key of this.#read.keys()) if (!listed.includes(key)) this.#read.delete(key);
    const all = await this.#notes(listed);
    return [...new Set(all.map(({ runId }) => runId))].flatMap((runId) => {
      const notes = all.filter((note) => note.runId === runId);
      const newest = notes.toSorted((a, b) => (a.at < b.at ? -1 : 1)).at(-1);
      if (newest === undefined) return [];
      const { store, kind } = newest;
      const isStarting = notes.some((note) => this.#isStarting(note));
      return { runId, store, kind, isStarting, notes: notes.map((note) => keyOf(note)) };
    });
  }

  async forget({ runId, store, notes }: NotedRun): Promise<void> {
    this.#driven.delete(wordOf({ runId, store }));
    await this.#remove(notes);
  }

  async #write(run: DrivenRun, startedBy?: DrivenNote['startedBy']): Promise<string> {
    const unproven = {
      format: recordFormat,
      stack: this.#shared.name,
      runId: run.runId,
      note: randomBytes(8).toString('hex'),
      store: run.store,
      kind: run.kind,
      machine: this.#instance,
      at: new Date().toISOString(),
      ...(startedBy && { startedBy }),
    } as const;
    const note: DrivenNote = { ...unproven, proof: this.#proof(unproven).toString('hex') };
    await (await this.#opened()).create(keyOf(note), encodeRecord(note));
    this.#listed = undefined;
    return keyOf(note);
  }

  async #remove(notes: readonly string[]): Promise<void> {
    const store = await this.#opened();
    for (const key of notes) await store.remove(key);
    this.#listed = undefined;
  }

  #list(): Promise<readonly string[]> {
    const lastsMs = isPaidByRequest(this.#shared.store) ? paidListingMs : 0;
    if (this.#listed !== undefined && performance.now() - this.#listed.at < lastsMs) return this.#listed.keys;
    const listed = this.#opened().then((store) => store.list(keys.drivenRuns(this.#shared.name)));
    this.#listed = { at: performance.now(), keys: listed };
    listed.catch(() => (this.#listed = undefined));
    return listed;
  }

  /** The notes with these keys; others are left out. */
  async #notes(names: readonly string[]): Promise<DrivenNote[]> {
    const store = await this.#opened();
    const unread = names.filter((key) => !this.#read.has(key));
    for (const key of unread) this.#read.set(key, await this.#readNote(store, key));
    return names.flatMap((key) => this.#read.get(key) ?? []);
  }

  async #readNote(store: Store, key: string): Promise<DrivenNote | undefined> {
    const found = (await readRecord(store, key, drivenNote).catch(undefinedIfDamaged))?.record;
    if (found === undefined || keyOf(found) !== key || found.stack !== this.#shared.name) return undefined;
    const { proof, ...unproven } = found;
    const [given, expected] = [Buffer.from(proof, 'hex'), this.#proof(unproven)];
    return given.length === expected.length && timingSafeEqual(given, expected) ? found : undefined;
  }

  #proof(note: Omit<DrivenNote, 'proof'>): Buffer {
    return createHmac('sha256', this.#secret).update(canonicalJson(note)).digest();
  }

  #isStarting({ machine, startedBy, at }: DrivenNote): boolean {
    if (startedBy === undefined) return false;
    return machine === this.#instance ? isAlive(startedBy) : Date.now() - Date.parse(at) < startingMs;
  }

  #opened(): Promise<Store> {
    if (this.#store !== undefined) return this.#store;
    const store = this.#open();
    this.#store = store;
    store.catch(() => (this.#store = undefined));
    return store;
  }

  /**
   * `petrel up` has claimed the stack's name there. A folder without the claim is another one, such as an empty mount
   * point.
   */
  async #open(): Promise<Store> {
    const { name, store: url } = this.#shared;
    const store = await openStore(url, 'refuse');
    if ((await store.head(keys.stackClaim(name, 1))) === undefined) throw storeGone(url);
    return store;
  }
}

const wordOf = ({ runId, store }: Pick<DrivenRun, 'runId' | 'store'>): string => `${runId} ${store}`;

const keyOf = ({ stack, runId, note }: Pick<DrivenNote, 'stack' | 'runId' | 'note'>): string =>
  keys.drivenRun(stack, runId, note);

function undefinedIfDamaged(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'DamagedRecord') return undefined;
  throw error;
}
