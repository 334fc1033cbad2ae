/**
 * The log of one run: where it ends, which state each position has, and who may append. Everything is derived from the
 * store.
 *
 * Terms, batch records and update records are decisions: they are created once, never changed, and numbered without
 * gaps. So a RunLog caches what it has read, and later calls only ask the store whether there is more. The run's
 * checkpoints, validations and status entries are found by its parts of these names.
 */
import type { z } from 'zod';
import { damage, isDamage } from '../../core/records/damage.ts';
import { TerminalError } from '../../core/errors.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { actorOf } from '../../core/records/components.ts';
import type { Components } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { publicationOf } from '../../core/records/publications.ts';
import type { Publication } from '../../core/records/publications.ts';
import { batchDecision, revisionRecord, runRecord, termRecord, updateDecision } from '../../core/records/schema.ts';
import type {
  BatchRecord,
  BatchSeal,
  ComponentState,
  Counters,
  NumericProfile,
  RevisionRecord,
  RunRecord,
  TermRecord,
  UpdateRecord,
  UpdateSeal,
} from '../../core/records/schema.ts';
import { lastOf, newestListed, newestNear } from '../objects/dense.ts';
import { runGone } from '../../core/store-gone.ts';
import { beginOf, stretchesOf } from './lineage.ts';
import type { LogEnd, Stretch } from './lineage.ts';
import { needRecord, readRecord } from '../objects/records.ts';
import type { Stored } from '../objects/records.ts';
import { RunCheckpoints } from './run-checkpoints.ts';
import { RunEvaluations } from './run-evaluations.ts';
import { StatusLog } from './status-log.ts';

/** The state at a position of the log. */
export interface LogPosition {
  readonly term: number;
  /** Policy version: 0 is the base. */
  readonly position: number;
  /** Digest of the record that produced this position: an update, or the term. */
  readonly parent: Digest;
  readonly stateDigest: Digest;
  readonly components: Components<ComponentState>;
  /** Digest of the policy. */
  readonly weightsDigest: Digest;
  /** What samplers load of it. */
  readonly publication: Publication;
  readonly counters: Counters;
}

/** The end of a run's log. */
export interface Head extends LogPosition {
  readonly termRecord: TermRecord;
  /** The arithmetic of the policy. */
  readonly profile: NumericProfile;
  /** The batch of the next iteration, when it is committed and its update is not. */
  readonly pending: Stored<BatchRecord> | undefined;
  /** Present when the term is closed: no record can be appended until the next term is opened. */
  readonly seal: Stored<BatchSeal> | Stored<UpdateSeal> | undefined;
  /** This process has appended the last record: nobody else has asked for jobs of the next one. */
  readonly isOwn?: true;
}

/** The committed batch and update of one iteration. */
export interface Iteration {
  readonly batch: Stored<BatchRecord>;
  readonly update: Stored<UpdateRecord>;
}

const start: Counters = { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: { klCoef: 0 } };

function isBatchSeal(stored: Stored<BatchRecord> | Stored<BatchSeal>): stored is Stored<BatchSeal> {
  return stored.record.decision === 'seal';
}

function isUpdate(stored: Stored<BatchRecord> | Stored<UpdateRecord>): stored is Stored<UpdateRecord> {
  return 'outcome' in stored.record;
}

function isUpdateSeal(stored: Stored<UpdateRecord> | Stored<UpdateSeal>): stored is Stored<UpdateSeal> {
  return stored.record.outcome === 'seal';
}

function missing(key: string): never {
  throw damage('MissingRecord', key, 'expected a record, found nothing');
}

/**
 * Batches, updates and validations that are kept in memory, because the stages of one iteration read them repeatedly.
 */
const keptRecords = 16;

export class RunLog {
  readonly store: Store;
  readonly runId: RunId;
  readonly checkpoints: RunCheckpoints;
  readonly evaluations: RunEvaluations;
  readonly status: StatusLog;
  /** The newest records by key; the oldest one is evicted first. */
  readonly #kept = new Map<string, Stored<unknown>>();
  readonly #terms = new Map<number, Stored<TermRecord>>();
  /** The end of the log at the last read. */
  #newestTerm = 0;
  #lastPosition: { readonly term: number; readonly position: number } | undefined;
  /** The batch or update that this process has appended last, where it has left the log. */
  #appended: Stored<BatchRecord> | Stored<UpdateRecord> | undefined;
  #look: Promise<Stored<TermRecord> | undefined> | undefined;

  constructor(store: Store, runId: RunId) {
    this.store = store;
    this.runId = runId;
    this.checkpoints = new RunCheckpoints(this);
    this.evaluations = new RunEvaluations(this);
    this.status = new StatusLog(store, runId);
  }

  /**
   * Clears the cache. The next call reads everything from the store again and notices records that were lost since
   * then.
   */
  forget(): void {
    this.#kept.clear();
    this.#terms.clear();
    this.evaluations.forget();
    this.status.forget();
    this.#newestTerm = 0;
    this.#lastPosition = undefined;
    this.#appended = undefined;
  }

  /** This process has appended a record. `undefined`: others may have, so that the next head is looked for. */
  appended(record: Stored<BatchRecord> | Stored<UpdateRecord> | undefined): void {
    this.#appended = record;
    if (record === undefined) return;
    this.#keep(record);
    const { term, iteration } = record.record;
    if (isUpdate(record)) this.#lastPosition = { term, position: iteration };
  }

  /**
   * The end of the log where this process has left it, without a request. Another process may have closed the term
   * since: `hasTerm` notices that, and so does any append. Undefined when this process has not appended the last record
   * that it knows.
   */
  async ownHead(): Promise<Head | undefined> {
    const last = this.#appended;
    if (last === undefined || last.record.term !== this.#newestTerm) return undefined;
    const { record: termRecord } = await this.#term(last.record.term);
    const isApplied = isUpdate(last);
    const at = await this.at(last.record.iteration - (isApplied ? 0 : 1), termRecord);
    const { profile } = actorOf(termRecord.components);
    return { ...at, termRecord, profile, pending: isApplied ? undefined : last, seal: undefined, isOwn: true };
  }

  /** Is this the newest term, as the store says now? Stages that ask at the same time share the answer. */
  async hasTerm(term: number): Promise<boolean> {
    this.#look ??= this.newestTerm().finally(() => (this.#look = undefined));
    return (await this.#look)?.record.term === term;
  }

  /**
   * Call this before treating a missing record as a new run: the run's first record stays even when the run is deleted.
   * Throws RetryableError `StoreGone`.
   */
  async ensureThere(): Promise<void> {
    if ((await this.store.head(keys.run(this.runId))) === undefined) throw runGone(this.runId, this.store.url);
  }

  async run(): Promise<RunRecord> {
    return (await needRecord(this.store, keys.run(this.runId), runRecord)).record;
  }

  /** Revision `n` of the recipe; default: the newest term's, or the first one before there is a term. */
  async revision(n?: number): Promise<RevisionRecord> {
    const wanted = n ?? (await this.newestTerm())?.record.revision ?? 1;
    return (await needRecord(this.store, keys.revision(this.runId, wanted), revisionRecord)).record;
  }

  /** Highest revision number. Perhaps no term uses it yet. */
  newestRevision(): Promise<number> {
    return newestListed(this.store, keys.revisions(this.runId), (n) => keys.revision(this.runId, n));
  }

  /** The newest term; undefined before the run was opened. */
  async newestTerm(): Promise<Stored<TermRecord> | undefined> {
    const key = (n: number) => keys.term(this.runId, n);
    const newest =
      this.#newestTerm === 0
        ? await newestListed(this.store, keys.terms(this.runId), key)
        : await newestNear(this.store, key, this.#newestTerm);
    // Terms are never removed, so the store was replaced by another one, or has lost records.
    if (newest < this.#newestTerm) this.forget();
    this.#newestTerm = newest;
    return newest === 0 ? undefined : this.#term(newest);
  }

  /** The terms that the log consists of, newest first. Abandoned terms are not among them. */
  async chain(from?: TermRecord): Promise<Stored<TermRecord>[]> {
    const newest = from ?? (await this.newestTerm())?.record;
    const terms: Stored<TermRecord>[] = [];
    if (newest !== undefined) for await (const { term } of this.stretches(newest)) terms.push(await this.#term(term));
    return terms;
  }

  /** Which terms hold the log that ends in `newest`, newest first. */
  stretches(newest: TermRecord): AsyncGenerator<Stretch> {
    return stretchesOf(newest, async (term) => (await this.#term(term)).record);
  }

  /** The position before the first iteration: 0, or the position where a fork starts. */
  async first(): Promise<number> {
    return (await this.newestTerm()) === undefined ? 0 : beginOf((await this.#term(1)).record);
  }

  /**
   * The end of the log; undefined before the first term. In a damaged store it may end before a record that was lost:
   * `findHole` (log-holes.ts) notices that. Throws PauseError `MissingRecord` or `DamagedRecord`.
   */
  async head(): Promise<Head | undefined> {
    const term = (await this.newestTerm())?.record;
    if (term === undefined) return undefined;
    // The log mostly ends where it did at the last look: the batch after that is asked for at the same time.
    const known = this.#knownPosition(term);
    const [position, ahead] = await Promise.all([
      this.#findLastPosition(term),
      this.#batchDecision(term.term, known + 1).then(
        (found) => ({ found }),
        (error: unknown) => {
          if (isDamage(error)) return undefined; // it is read again where it is the next one
          throw error;
        },
      ),
    ]);
    const at = await this.at(position, term);
    const isNext = position === known && ahead !== undefined;
    const next = isNext ? ahead.found : await this.#batchDecision(term.term, position + 1);
    const { profile } = actorOf(term.components);
    const end = { ...at, termRecord: term, profile };
    if (this.#appended?.digest !== (next?.digest ?? at.parent)) this.#appended = undefined;
    if (next !== undefined && isBatchSeal(next)) return { ...end, pending: undefined, seal: next };
    const update = next && (await this.#updateDecision(term.term, position + 1));
    const seal = update !== undefined && isUpdateSeal(update) ? update : undefined;
    return { ...end, pending: next, seal };
  }

  /**
   * The last committed position, for a reader that appends nothing. `guess`: a position of the newest term that the
   * caller believes to be committed; it saves requests at the first look at a long log, and may be wrong.
   */
  async end(guess: (term: number) => Promise<number | undefined>): Promise<LogEnd | undefined> {
    const termRecord = (await this.newestTerm())?.record;
    if (termRecord === undefined) return undefined;
    const { term } = termRecord;
    if (this.#lastPosition?.term !== term) {
      const position = (await guess(term)) ?? 0;
      const update = position > beginOf(termRecord) ? await this.#updateDecision(term, position) : undefined;
      if (update !== undefined && !isUpdateSeal(update)) this.#lastPosition = { term, position };
    }
    return { position: await this.#findLastPosition(termRecord), termRecord };
  }

  /** The committed state at `position`. `newest`: the newest term's record, when the caller has it. */
  async at(position: number, newest?: TermRecord): Promise<LogPosition> {
    const last = newest ?? (await this.#needNewest());
    const { term } = last;
    const owner = await this.#stretchAt(position, last);
    if (position > owner.from) {
      const { digest: parent, record } = await this.#update(owner.term, position);
      const { stateDigest, components, after: counters } = record;
      const policy = actorOf(components);
      const { weightsDigest } = policy;
      const publication = publicationOf(policy);
      return { term, position, parent, stateDigest, components, weightsDigest, publication, counters };
    }
    const { digest: parent, record } = await this.#term(owner.term);
    const { startState: stateDigest, components } = record;
    const policy = actorOf(components);
    const { weightsDigest } = policy;
    const publication = publicationOf(policy);
    const counters = await this.#countersOf(record);
    return { term, position, parent, stateDigest, components, weightsDigest, publication, counters };
  }

  /** The term that begins at this position with the state of a standby, if it is there that the log goes on. */
  async begunByStandbyAt(position: number): Promise<number | undefined> {
    const { term, from } = await this.#stretchAt(position, await this.#needNewest());
    return from === position && (await this.#term(term)).record.standby !== undefined ? term : undefined;
  }

  /**
   * The `parent` of a new term that continues from `position`: the record that made the state, and the term that holds
   * it.
   */
  async parentAt(position: number, newest?: TermRecord): Promise<NonNullable<TermRecord['parent']>> {
    const first = await this.#term(1);
    if (position === beginOf(first.record)) return { term: 1, position, record: first.digest };
    const { term } = await this.#holderOf(position, newest ?? (await this.#needNewest()));
    return { term, position, record: (await this.#update(term, position)).digest };
  }

  /** Iteration k of the log. `newest`: the newest term's record, when the caller has it. */
  async iteration(k: number, newest?: TermRecord): Promise<Iteration> {
    const { term } = await this.#holderOf(k, newest ?? (await this.#needNewest()));
    const batch = (await this.#batchDecision(term, k)) ?? missing(keys.batch(this.runId, term, k));
    if (isBatchSeal(batch)) throw endsBefore(batch.key, `the batch of iteration ${k}`, term);
    return { batch, update: await this.#update(term, k) };
  }

  /** All committed iterations from `from` on, ascending. */
  async *iterations(from = 1): AsyncGenerator<Iteration> {
    const head = await this.head();
    if (head === undefined) return;
    for (let k = Math.max(from, (await this.first()) + 1); k <= head.position; k++)
      yield this.iteration(k, head.termRecord);
  }

  async #update(term: number, k: number): Promise<Stored<UpdateRecord>> {
    const update = (await this.#updateDecision(term, k)) ?? missing(keys.update(this.runId, term, k));
    if (isUpdateSeal(update)) throw endsBefore(update.key, `the update of iteration ${k}`, term);
    return update;
  }

  /** A batch record or a seal. The schema has one type for both, and the callers need to distinguish them. */
  #batchDecision(term: number, k: number): Promise<Stored<BatchRecord> | Stored<BatchSeal> | undefined> {
    return this.read(keys.batch(this.runId, term, k), batchDecision) as Promise<
      Stored<BatchRecord> | Stored<BatchSeal> | undefined
    >;
  }

  #updateDecision(term: number, k: number): Promise<Stored<UpdateRecord> | Stored<UpdateSeal> | undefined> {
    return this.read(keys.update(this.runId, term, k), updateDecision) as Promise<
      Stored<UpdateRecord> | Stored<UpdateSeal> | undefined
    >;
  }

  async #needNewest(): Promise<TermRecord> {
    const term = await this.newestTerm();
    if (term === undefined) throw new TerminalError('NoTerm', `${this.runId} has no term yet`);
    return term.record;
  }

  /**
   * Throws PauseError `DamagedRecord` for a parent that is not an earlier term, because such a chain could be endless.
   */
  async #term(n: number): Promise<Stored<TermRecord>> {
    const known = this.#terms.get(n);
    if (known !== undefined) return known;
    const term = await needRecord(this.store, keys.term(this.runId, n), termRecord);
    const { parent } = term.record;
    if (term.record.term !== n)
      throw damage('DamagedRecord', term.key, `expected term ${n}, found term ${term.record.term}`);
    if (parent !== undefined && parent.term >= n)
      throw damage('DamagedRecord', term.key, `expected an earlier term as its parent, found term ${parent.term}`);
    this.#terms.set(n, term);
    return term;
  }

  /** The newest stretch that starts at or before this position: a record after the position is appended to its term. */
  async #stretchAt(position: number, newest: TermRecord): Promise<Stretch> {
    for await (const stretch of this.stretches(newest)) if (stretch.from <= position) return stretch;
    const first = await this.first();
    throw new TerminalError('NotFound', `${this.runId} starts at position ${first}; there is no position ${position}`);
  }

  /** The term whose folder holds the records of iteration k. */
  #holderOf(k: number, newest: TermRecord): Promise<Stretch> {
    return this.#stretchAt(k - 1, newest);
  }

  /** Counters at the start of a term. */
  async #countersOf({ parent, base }: TermRecord): Promise<Counters> {
    if (parent === undefined) return base?.counters ?? start;
    const { record } = await this.#term(parent.term);
    return parent.position === beginOf(record)
      ? this.#countersOf(record)
      : (await this.#update(parent.term, parent.position)).record.after;
  }

  #knownPosition(term: TermRecord): number {
    return this.#lastPosition?.term === term.term ? this.#lastPosition.position : beginOf(term);
  }

  /**
   * The last iteration whose update is committed in this term. Updates are dense, so it is found by asking for keys.
   */
  async #findLastPosition(term: TermRecord): Promise<number> {
    const known = this.#knownPosition(term);
    const exists = async (k: number) => (await this.store.head(keys.update(this.runId, term.term, k))) !== undefined;
    const last = await lastOf(exists, known);
    // The last update may be a seal, which commits nothing.
    const update = last > known ? await this.#updateDecision(term.term, last) : undefined;
    const position = update !== undefined && isUpdateSeal(update) ? last - 1 : last;
    this.#lastPosition = { term: term.term, position };
    return position;
  }

  /**
   * Reads a record that never changes, from the cache or the store. A key is always read with the same schema, so the
   * type is right.
   */
  async read<S extends z.ZodType>(key: string, schema: S): Promise<Stored<z.infer<S>> | undefined> {
    const kept = this.#kept.get(key) as Stored<z.infer<S>> | undefined;
    if (kept !== undefined) return kept;
    const found = await readRecord(this.store, key, schema);
    if (found === undefined) return undefined;
    this.#keep(found);
    return found;
  }

  #keep(stored: Stored<unknown>): void {
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= keptRecords && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(stored.key, stored);
  }
}

function endsBefore(key: string, expected: string, term: number): TerminalError {
  return new TerminalError('LogHole', `${key}: expected ${expected}, found the end of term ${term}`, { where: key });
}
