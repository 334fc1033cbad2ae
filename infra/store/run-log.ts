/** The log of one run: who may append, where it ends, what state is there. Everything is derived from the store. */
import type { z } from 'zod';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import {
  batchRecord,
  checkpointManifest,
  evalRecord,
  revisionRecord,
  runRecord,
  statusEntry,
  termRecord,
  updateRecord,
} from '../../core/records/schema.ts';
import type {
  BatchRecord,
  CheckpointManifest,
  Counters,
  EvalRecord,
  RevisionRecord,
  RunRecord,
  StatusEntry,
  TermRecord,
  UpdateRecord,
} from '../../core/records/schema.ts';
import { needRecord, readRecord } from './records.ts';
import type { Stored } from './records.ts';

/** The state at a position of the log. */
export interface LogPosition {
  readonly term: number;
  /** Policy version: 0 is the base. */
  readonly position: number;
  /** Digest of the record that ends at this position: an update, or the term's. */
  readonly parent: Digest;
  readonly stateDigest: Digest;
  readonly weightsDigest: Digest;
  readonly counters: Counters;
}

/** Where a run stands. `pending` is a batch that is committed and not yet applied. */
export interface Head extends LogPosition {
  readonly termRecord: TermRecord;
  readonly pending: Stored<BatchRecord> | undefined;
}

const start: Counters = { cursor: 0, optimizerSteps: 0, badSteps: 0, klCoef: 0 };

/** Enough for an iteration's stages to find what the one before them read. */
const keptRecords = 16;

export class RunLog {
  readonly store: Store;
  readonly runId: RunId;

  /** Terms, batches and updates never change: those near the end of the log are read and checked once. */
  readonly #kept = new Map<string, Stored<unknown>>();

  constructor(store: Store, runId: RunId) {
    this.store = store;
    this.runId = runId;
  }

  async run(): Promise<RunRecord> {
    return (await needRecord(this.store, keys.run(this.runId), runRecord)).record;
  }

  /** The newest recipe revision. */
  async revision(): Promise<RevisionRecord> {
    return (await needRecord(this.store, keys.revision(this.runId, await this.#newest((n) => keys.revision(this.runId, n))), revisionRecord)).record;
  }

  /** The newest term; undefined before the run was opened. */
  async newestTerm(): Promise<Stored<TermRecord> | undefined> {
    const term = await this.#newest((n) => keys.term(this.runId, n));
    return term === 0 ? undefined : this.#need(keys.term(this.runId, term), termRecord);
  }

  /** undefined before the first term. Throws TerminalError `LogHole` where a record that must be there is not. */
  async head(): Promise<Head | undefined> {
    const term = await this.newestTerm();
    if (term === undefined) return undefined;
    const position = await this.#lastPosition(term.record);
    const at = await this.at(position, term);
    const pending = await this.#read(keys.batch(this.runId, term.record.term, position + 1), batchRecord);
    return { ...at, termRecord: term.record, pending };
  }

  /** The state at `position`, as committed and reachable from the newest term. */
  async at(position: number, newest?: Stored<TermRecord>): Promise<LogPosition> {
    const term = newest ?? (await this.newestTerm());
    if (term === undefined) throw new TerminalError('NoTerm', `${this.runId} has no term yet`);
    const owner = await this.#termOf(position, term);
    if (position === (owner.record.parent?.position ?? 0)) {
      const before = owner.record.parent === undefined ? start : (await this.#update(owner.record.parent.term, position)).record.after;
      return {
        term: term.record.term,
        position,
        parent: owner.digest,
        stateDigest: owner.record.startState,
        weightsDigest: owner.record.startWeights,
        counters: before,
      };
    }
    const update = await this.#update(owner.record.term, position);
    return {
      term: term.record.term,
      position,
      parent: update.digest,
      stateDigest: update.record.stateDigest,
      weightsDigest: update.record.weightsDigest,
      counters: update.record.after,
    };
  }

  /** The committed batch and update of an iteration, reachable from the newest term. */
  async iteration(k: number): Promise<{ batch: Stored<BatchRecord>; update: Stored<UpdateRecord> }> {
    const term = await this.newestTerm();
    if (term === undefined) throw new TerminalError('NoTerm', `${this.runId} has no term yet`);
    const owner = (await this.#termOf(k, term)).record.term;
    return {
      batch: await this.#need(keys.batch(this.runId, owner, k), batchRecord),
      update: await this.#update(owner, k),
    };
  }

  /** All committed updates, in order of iteration, with their batches. */
  async *iterations(from = 1): AsyncGenerator<{ batch: Stored<BatchRecord>; update: Stored<UpdateRecord> }> {
    const head = await this.head();
    for (let k = from; head !== undefined && k <= head.position; k++) yield this.iteration(k);
  }

  /** Validation records, in order of policy version. */
  async evaluations(): Promise<EvalRecord[]> {
    const head = await this.head();
    const found: EvalRecord[] = [];
    let term = head && (await this.newestTerm());
    let until = Number.POSITIVE_INFINITY;
    while (term !== undefined) {
      for (const name of await this.store.children(keys.positions(this.runId, term.record.term))) {
        const k = Number(name.replace('/', ''));
        if (!Number.isInteger(k) || k > until) continue;
        const record = await readRecord(this.store, keys.evaluation(this.runId, term.record.term, k), evalRecord);
        if (record !== undefined) found.push(record.record);
      }
      until = term.record.parent?.position ?? 0;
      term = term.record.parent && (await readRecord(this.store, keys.term(this.runId, term.record.parent.term), termRecord));
    }
    return found.sort((a, b) => a.iteration - b.iteration);
  }

  /** Checkpoints that belong to the committed log, newest first. A manifest that cannot be read is passed over. */
  async checkpoints(upTo = Number.POSITIVE_INFINITY): Promise<Stored<CheckpointManifest>[]> {
    const found: Stored<CheckpointManifest>[] = [];
    for (const { key } of await this.checkpointNames(upTo)) {
      const manifest = await readRecord(this.store, key, checkpointManifest).catch((error: unknown) => {
        if (error instanceof TerminalError && error.code === 'DamagedRecord') return undefined;
        throw error;
      });
      if (manifest !== undefined) found.push(manifest);
    }
    return found;
  }

  /** Names of the checkpoints of the committed log, newest first; nothing of them is read. */
  async checkpointNames(upTo = Number.POSITIVE_INFINITY): Promise<{ readonly iteration: number; readonly stateDigest: Digest; readonly key: string }[]> {
    const candidates = (await this.store.children(keys.checkpoints(this.runId)))
      .map((name) => /^(\d+)-([0-9a-f]{64})\.json$/.exec(name))
      .filter((match) => match !== null)
      .map((match) => ({ iteration: Number(match[1]), stateDigest: String(match[2]) }))
      .filter(({ iteration }) => iteration <= upTo)
      .sort((a, b) => b.iteration - a.iteration);
    const head = candidates.length === 0 ? undefined : await this.head();
    const found: { iteration: number; stateDigest: Digest; key: string }[] = [];
    for (const { iteration, stateDigest } of candidates) {
      if (head === undefined || iteration > head.position) continue;
      if ((await this.at(iteration)).stateDigest !== stateDigest) continue;
      found.push({ iteration, stateDigest, key: keys.checkpoint(this.runId, iteration, stateDigest) });
    }
    return found;
  }

  /** Newest state entry; undefined before the run was started. */
  async status(): Promise<StatusEntry | undefined> {
    const n = await this.#newest((index) => keys.status(this.runId, index));
    return n === 0 ? undefined : (await needRecord(this.store, keys.status(this.runId, n), statusEntry)).record;
  }

  async #update(term: number, k: number): Promise<Stored<UpdateRecord>> {
    return this.#need(keys.update(this.runId, term, k), updateRecord);
  }

  /** The term whose folder holds position k: the newest one that begins at or before it. */
  async #termOf(k: number, newest: Stored<TermRecord>): Promise<Stored<TermRecord>> {
    let term = newest;
    while (term.record.parent !== undefined && k <= term.record.parent.position) {
      if (k === term.record.parent.position && term === newest) return term;
      term = await this.#need(keys.term(this.runId, term.record.parent.term), termRecord);
    }
    return term;
  }

  /** Last k whose update is committed in this term; the listing is only a hint where to look. */
  async #lastPosition(term: TermRecord): Promise<number> {
    const first = term.parent?.position ?? 0;
    const committed = async (k: number) => {
      const update = await this.#read(keys.update(this.runId, term.term, k), updateRecord);
      return update !== undefined && update.record.outcome !== 'seal';
    };
    const names = await this.store.children(keys.positions(this.runId, term.term));
    let k = Math.max(first, ...names.map((name) => Number(name.replace('/', ''))).filter(Number.isInteger));
    while (k > first && !(await committed(k))) k--;
    while (await committed(k + 1)) k++;
    return k;
  }

  /** Highest n ≥ 1 of a dense sequence of keys; 0 when empty. Galloping, then halving. */
  async #newest(key: (n: number) => string): Promise<number> {
    const there = async (n: number) => (await this.store.head(key(n))) !== undefined;
    let low = 0;
    let high = 1;
    while (await there(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (await there(middle)) low = middle;
      else high = middle;
    }
    return low;
  }

  async #need<S extends z.ZodType>(key: string, schema: S): Promise<Stored<z.infer<S>>> {
    return (await this.#read(key, schema)) ?? needRecord(this.store, key, schema);
  }

  /** A key is always read with the same schema, so what is kept under it has its type. */
  async #read<S extends z.ZodType>(key: string, schema: S): Promise<Stored<z.infer<S>> | undefined> {
    const kept = this.#kept.get(key) as Stored<z.infer<S>> | undefined;
    if (kept !== undefined) return kept;
    const found = await readRecord(this.store, key, schema);
    if (found === undefined) return undefined;
    if (this.#kept.size >= keptRecords) this.#kept.delete(this.#kept.keys().next().value ?? '');
    this.#kept.set(key, found);
    return found;
  }
}
