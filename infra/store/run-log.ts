/** The log of one run: who may append, where it ends, what state is there. Everything is derived from the store. */
import type { z } from 'zod';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { damage, isDamage } from '../../core/damage.ts';
import { errorToJson, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import {
  batchDecision,
  checkpointManifest,
  evalRecord,
  recordFormat,
  revisionRecord,
  runRecord,
  statusEntry,
  termRecord,
  updateDecision,
} from '../../core/records/schema.ts';
import type {
  BatchRecord,
  BatchSeal,
  CheckpointManifest,
  Counters,
  EvalRecord,
  RevisionRecord,
  RunRecord,
  StatusEntry,
  TermRecord,
  UpdateRecord,
  UpdateSeal,
} from '../../core/records/schema.ts';
import { newestOf } from './dense.ts';
import { runGone } from './folder-root.ts';
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
  /** The term is closed: nothing can be appended to it, the next one is to be opened. */
  readonly seal: Stored<BatchSeal> | Stored<UpdateSeal> | undefined;
}

/** A checkpoint that belongs to the log, by its name. */
export interface CheckpointName {
  readonly iteration: number;
  readonly stateDigest: Digest;
  readonly key: string;
}

const start: Counters = { cursor: 0, optimizerSteps: 0, badSteps: 0, klCoef: 0 };

/** Position at which a term begins; its first iteration is the next one. */
export function beginOf(term: TermRecord): number {
  return term.parent?.position ?? term.base?.position ?? 0;
}

function isBatchSeal(stored: Stored<BatchRecord> | Stored<BatchSeal>): stored is Stored<BatchSeal> {
  return stored.record.decision === 'seal';
}

function isUpdateSeal(stored: Stored<UpdateRecord> | Stored<UpdateSeal>): stored is Stored<UpdateSeal> {
  return stored.record.outcome === 'seal';
}

function missing(key: string): never {
  throw damage('MissingRecord', key, 'expected a record, found nothing');
}

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

  /** Asked before nothing is taken for a beginning: a run's first record stays even when the run is deleted. Throws RetryableError `StoreGone`. */
  async ensureThere(): Promise<void> {
    if ((await this.store.head(keys.run(this.runId))) === undefined) throw runGone(this.runId, this.store.url);
  }

  async run(): Promise<RunRecord> {
    return (await needRecord(this.store, keys.run(this.runId), runRecord)).record;
  }

  /** The recipe revision in force: the newest term's, or the first. */
  async revision(n?: number): Promise<RevisionRecord> {
    const wanted = n ?? (await this.newestTerm())?.record.revision ?? 1;
    return (await needRecord(this.store, keys.revision(this.runId, wanted), revisionRecord)).record;
  }

  /** Highest number of a revision, in force or not. */
  newestRevision(): Promise<number> {
    return newestOf(this.store, (n) => keys.revision(this.runId, n));
  }

  /** The newest term; undefined before the run was opened. */
  async newestTerm(): Promise<Stored<TermRecord> | undefined> {
    const term = await newestOf(this.store, (n) => keys.term(this.runId, n));
    return term === 0 ? undefined : this.#need(keys.term(this.runId, term), termRecord);
  }

  /** The terms that the log goes through, newest first. Terms that were given up for an earlier position are not among them. */
  async chain(newest?: Stored<TermRecord>): Promise<Stored<TermRecord>[]> {
    const terms: Stored<TermRecord>[] = [];
    for (let term = newest ?? (await this.newestTerm()); term !== undefined; term = await this.#before(term))
      terms.push(term);
    return terms;
  }

  /** Where the log begins: 0, or where a fork left its origin. */
  async first(): Promise<number> {
    const term = (await this.chain()).at(-1);
    return term === undefined ? 0 : beginOf(term.record);
  }

  /** undefined before the first term. Throws TerminalError `LogHole` where a record that must be there is not. */
  async head(): Promise<Head | undefined> {
    const term = await this.newestTerm();
    if (term === undefined) return undefined;
    const position = await this.#lastPosition(term.record);
    const at = await this.at(position, term);
    const next = await this.#batchDecision(term.record.term, position + 1);
    if (next !== undefined && isBatchSeal(next))
      return { ...at, termRecord: term.record, pending: undefined, seal: next };
    const last = next && (await this.#updateDecision(term.record.term, position + 1));
    return {
      ...at,
      termRecord: term.record,
      pending: next,
      seal: last !== undefined && isUpdateSeal(last) ? last : undefined,
    };
  }

  /** The state at `position`, as committed and reachable from the newest term. */
  async at(position: number, newest?: Stored<TermRecord>): Promise<LogPosition> {
    const term = newest ?? (await this.#needTerm());
    const owner = await this.#termAt(position, term);
    if (position === beginOf(owner.record)) {
      const { startState: stateDigest, startWeights: weightsDigest } = owner.record;
      return {
        term: term.record.term,
        position,
        parent: owner.digest,
        stateDigest,
        weightsDigest,
        counters: await this.#countersOf(owner),
      };
    }
    const { digest: parent, record } = await this.#update(owner.record.term, position);
    return {
      term: term.record.term,
      position,
      parent,
      stateDigest: record.stateDigest,
      weightsDigest: record.weightsDigest,
      counters: record.after,
    };
  }

  /** What a new term that goes on from `position` names as its parent: the record that made the state, and who holds it. */
  async parentAt(position: number): Promise<NonNullable<TermRecord['parent']>> {
    const newest = await this.#needTerm();
    const first = (await this.chain(newest)).at(-1) ?? newest;
    if (position === beginOf(first.record)) return { term: first.record.term, position, record: first.digest };
    const { term } = (await this.#holderOf(position, newest)).record;
    return { term, position, record: (await this.#update(term, position)).digest };
  }

  /** The committed batch and update of an iteration, reachable from the newest term. */
  async iteration(k: number): Promise<{ batch: Stored<BatchRecord>; update: Stored<UpdateRecord> }> {
    const { term } = (await this.#holderOf(k, await this.#needTerm())).record;
    const batch = (await this.#batchDecision(term, k)) ?? missing(keys.batch(this.runId, term, k));
    if (isBatchSeal(batch))
      throw new TerminalError(
        'LogHole',
        `${batch.key}: expected the batch of iteration ${k}, found the end of term ${term}`,
        { where: batch.key },
      );
    return { batch, update: await this.#update(term, k) };
  }

  /** All committed updates, in order of iteration, with their batches. */
  async *iterations(from = 1): AsyncGenerator<{ batch: Stored<BatchRecord>; update: Stored<UpdateRecord> }> {
    const head = await this.head();
    for (let k = Math.max(from, (await this.first()) + 1); head !== undefined && k <= head.position; k++)
      yield this.iteration(k);
  }

  /** Validation records, in order of policy version. */
  async evaluations(): Promise<EvalRecord[]> {
    const found = new Map<number, EvalRecord>();
    let until = Number.POSITIVE_INFINITY;
    for (const { record: term } of await this.chain()) {
      for (const name of await this.store.children(keys.positions(this.runId, term.term))) {
        const k = Number(name.replace('/', ''));
        if (!Number.isInteger(k) || k > until || found.has(k)) continue;
        const record = await readRecord(this.store, keys.evaluation(this.runId, term.term, k), evalRecord);
        if (record !== undefined) found.set(k, record.record);
      }
      until = beginOf(term);
    }
    return [...found.values()].sort((a, b) => a.iteration - b.iteration);
  }

  /** Was the policy at this position validated, in whichever term? */
  async isEvaluated(position: number): Promise<boolean> {
    for (const { record } of await this.chain()) {
      if ((await this.store.head(keys.evaluation(this.runId, record.term, position))) !== undefined) return true;
      if (position > beginOf(record)) return false;
    }
    return false;
  }

  /** Checkpoints that belong to the committed log, newest first. A manifest that cannot be read is passed over. */
  async checkpoints(upTo = Number.POSITIVE_INFINITY): Promise<Stored<CheckpointManifest>[]> {
    const found: Stored<CheckpointManifest>[] = [];
    for (const { iteration, stateDigest } of await this.checkpointNames(upTo)) {
      const manifest = await this.checkpointOf(iteration, stateDigest);
      if (manifest !== undefined) found.push(manifest);
    }
    return found;
  }

  /** The manifest of this state; undefined when there is none that can be read and is what its name says. */
  async checkpointOf(iteration: number, stateDigest: Digest): Promise<Stored<CheckpointManifest> | undefined> {
    const key = keys.checkpoint(this.runId, iteration, stateDigest);
    const found = await unlessDamaged(readRecord(this.store, key, checkpointManifest));
    const same =
      found?.record.runId === this.runId &&
      found.record.iteration === iteration &&
      found.record.stateDigest === stateDigest;
    return same ? found : undefined;
  }

  /** Names of the checkpoints of the committed log, newest first; nothing of them is read. */
  async checkpointNames(upTo = Number.POSITIVE_INFINITY): Promise<CheckpointName[]> {
    const candidates = (await this.store.children(keys.checkpoints(this.runId)))
      .map((name) => /^(\d+)-([0-9a-f]{64})\.json$/.exec(name))
      .filter((match) => match !== null)
      .map((match) => ({ iteration: Number(match[1]), stateDigest: String(match[2]) }))
      .filter(({ iteration }) => iteration <= upTo)
      .sort((a, b) => b.iteration - a.iteration);
    const head = candidates.length === 0 ? undefined : await this.head();
    const first = head === undefined ? 0 : await this.first();
    const found: CheckpointName[] = [];
    for (const { iteration, stateDigest } of candidates) {
      if (head === undefined || iteration > head.position || iteration < first) continue;
      if ((await unlessDamaged(this.at(iteration)))?.stateDigest !== stateDigest) continue;
      found.push({ iteration, stateDigest, key: keys.checkpoint(this.runId, iteration, stateDigest) });
    }
    return found;
  }

  /** Newest state entry; undefined before the run was started. One that cannot be read counts as a wish to pause: what was wished is not known. */
  async status(): Promise<StatusEntry | undefined> {
    const n = await newestOf(this.store, (index) => keys.status(this.runId, index));
    if (n === 0) return undefined;
    try {
      return (await needRecord(this.store, keys.status(this.runId, n), statusEntry)).record;
    } catch (error) {
      if (!isDamage(error)) throw error;
      return {
        format: recordFormat,
        runId: this.runId,
        n,
        at: new Date(0).toISOString(),
        wish: 'pause',
        state: 'paused',
        reason: errorToJson(error),
      };
    }
  }

  async #update(term: number, k: number): Promise<Stored<UpdateRecord>> {
    const update = (await this.#updateDecision(term, k)) ?? missing(keys.update(this.runId, term, k));
    if (isUpdateSeal(update))
      throw new TerminalError(
        'LogHole',
        `${update.key}: expected the update of iteration ${k}, found the end of term ${term}`,
        { where: update.key },
      );
    return update;
  }

  /** A record or a seal; whoever reads it tells them apart by the type of the whole. */
  #batchDecision(term: number, k: number): Promise<Stored<BatchRecord> | Stored<BatchSeal> | undefined> {
    return this.#read(keys.batch(this.runId, term, k), batchDecision) as Promise<
      Stored<BatchRecord> | Stored<BatchSeal> | undefined
    >;
  }

  #updateDecision(term: number, k: number): Promise<Stored<UpdateRecord> | Stored<UpdateSeal> | undefined> {
    return this.#read(keys.update(this.runId, term, k), updateDecision) as Promise<
      Stored<UpdateRecord> | Stored<UpdateSeal> | undefined
    >;
  }

  async #needTerm(): Promise<Stored<TermRecord>> {
    const term = await this.newestTerm();
    if (term === undefined) throw new TerminalError('NoTerm', `${this.runId} has no term yet`);
    return term;
  }

  async #before({ record }: Stored<TermRecord>): Promise<Stored<TermRecord> | undefined> {
    return record.parent && this.#need(keys.term(this.runId, record.parent.term), termRecord);
  }

  /** The newest term of the chain that begins at or before this position: what is appended after the position follows from it. */
  async #termAt(position: number, newest: Stored<TermRecord>): Promise<Stored<TermRecord>> {
    let term = newest;
    while (position < beginOf(term.record)) {
      const before = await this.#before(term);
      if (before === undefined)
        throw new TerminalError(
          'NotFound',
          `${this.runId} begins at position ${beginOf(term.record)}; there is no position ${position}`,
        );
      term = before;
    }
    return term;
  }

  /** The term whose folder holds the records of iteration k. */
  #holderOf(k: number, newest: Stored<TermRecord>): Promise<Stored<TermRecord>> {
    return this.#termAt(k - 1, newest);
  }

  /** Counters where a term begins. */
  async #countersOf({ record }: Stored<TermRecord>): Promise<Counters> {
    if (record.parent === undefined) return record.base?.counters ?? start;
    const parent = await this.#need(keys.term(this.runId, record.parent.term), termRecord);
    return record.parent.position === beginOf(parent.record)
      ? this.#countersOf(parent)
      : (await this.#update(record.parent.term, record.parent.position)).record.after;
  }

  /** Last k whose update is committed in this term; the listing is only a hint where to look. */
  async #lastPosition(term: TermRecord): Promise<number> {
    const first = beginOf(term);
    const committed = async (k: number) => {
      const update = await this.#updateDecision(term.term, k);
      return update !== undefined && !isUpdateSeal(update);
    };
    const names = await this.store.children(keys.positions(this.runId, term.term));
    let k = Math.max(first, ...names.map((name) => Number(name.replace('/', ''))).filter(Number.isInteger));
    while (k > first && !(await committed(k))) k--;
    while (await committed(k + 1)) k++;
    return k;
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

/** For what the log can do without. */
async function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
