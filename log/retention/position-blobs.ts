/** The blobs that batches and validations of a range of positions name, in every term with records there. */
import { digestPattern } from '../../core/ids.ts';
import { blobsOfBatch } from '../../core/records/batch-blobs.ts';
import { keys } from '../../core/records/keys.ts';
import { batchDecision, evalRecord, resultRecord, termRecord } from '../../core/records/schema.ts';
import type { BatchRecord, BatchSeal, Counters, RetentionEntry } from '../../core/records/schema.ts';
import { beginOf } from '../run/lineage.ts';
import { needRecord, readRecord } from '../objects/records.ts';
import type { Head, RunLog } from '../run/run-log.ts';

/** A term that may have records of positions above those that are done. */
interface LiveTerm {
  readonly term: number;
  readonly begin: number;
  /** Last position of a term of the log. Records up to there must exist. */
  readonly until: number;
}

export class PositionBlobs {
  readonly #log: RunLog;
  readonly #newest: number;
  readonly #terms: readonly LiveTerm[];

  private constructor(log: RunLog, newest: number, terms: readonly LiveTerm[]) {
    this.#log = log;
    this.#newest = newest;
    this.#terms = terms;
  }

  /** `known`: what an earlier pass found about the terms; without it each term's record is read. */
  static async open(log: RunLog, { term: newest, termRecord: record, position }: Head, known: RetentionEntry['terms']) {
    const fresh = Array.from({ length: newest - (known?.seen ?? 0) }, (_, i) => (known?.seen ?? 0) + 1 + i);
    const until = new Map<number, number>();
    let end = position;
    for await (const { term, from } of log.stretches(record)) {
      until.set(term, end);
      end = from;
    }
    const terms: LiveTerm[] = [];
    for (const term of new Set([...(known?.live ?? []), ...fresh])) {
      const begin = beginOf((await needRecord(log.store, keys.term(log.runId, term), termRecord)).record);
      terms.push({ term, begin, until: until.get(term) ?? begin });
    }
    return new PositionBlobs(log, newest, terms);
  }

  /**
   * Blobs of the positions after `first` up to `last`. The base, position 0, has a validation and no batch; it is
   * handled with position 1.
   */
  async between(first: number, last: number): Promise<string[]> {
    const found: string[] = [];
    if (last <= first) return found;
    for (const { term, begin, until } of this.#terms) {
      for (let k = Math.max(begin, first === 0 ? 0 : first + 1); k <= last; k++) {
        const batch = k === begin ? undefined : await this.#batch(term, k);
        // Batches of a term are dense: there is none after the first missing one.
        if (batch === undefined && k > Math.max(begin, until)) break;
        if (batch !== undefined) found.push(...(await this.#blobsOfBatch(batch)));
        found.push(...(await this.#blobsOfValidation(term, k)));
      }
    }
    return found;
  }

  /** The terms that a later pass must read, once everything up to `cleared` is done. A closed term does not grow. */
  async termsAbove(cleared: number): Promise<NonNullable<RetentionEntry['terms']>> {
    const live: number[] = [];
    for (const { term, begin, until } of this.#terms) {
      const ended =
        term < this.#newest &&
        Math.max(begin, until) <= cleared &&
        (await this.#batch(term, cleared + 1)) === undefined;
      if (!ended) live.push(term);
    }
    return { seen: this.#newest, live };
  }

  async #batch(term: number, k: number) {
    return (await readRecord(this.#log.store, keys.batch(this.#log.runId, term, k), batchDecision))?.record;
  }

  async #blobsOfBatch(batch: BatchRecord | BatchSeal): Promise<string[]> {
    if (batch.decision === 'seal') return [];
    return [
      ...blobsOfBatch(batch).map((digest) => keys.blob(this.#log.runId, digest)),
      ...(await blobsOfResults(this.#log, [...batch.results, ...(batch.baselines ?? [])])),
      ...[batch.before, batch.after].flatMap((counters) => blobsOfCounters(this.#log, counters)),
    ];
  }

  async #blobsOfValidation(term: number, k: number): Promise<string[]> {
    const found = await readRecord(this.#log.store, keys.evaluation(this.#log.runId, term, k), evalRecord);
    return blobsOfResults(this.#log, found?.record.results ?? []);
  }
}

/** Blobs of controllers and samplers. */
export const blobsOfCounters = ({ runId }: RunLog, { controllers }: Counters): string[] =>
  Object.values(controllers).flatMap((state) => (typeof state === 'object' ? [keys.blob(runId, state.blob)] : []));

/** Fields of job outputs that name blobs. */
const blobFields = ['trajectories', 'scores', 'tensors', 'shards', 'values'] as const;

/** Blobs that the results of these jobs name. */
export async function blobsOfResults({ store, runId }: RunLog, jobs: readonly string[]): Promise<string[]> {
  const records = await Promise.all(jobs.map((job) => readRecord(store, keys.result(runId, job), resultRecord)));
  return records
    .flatMap((found) => blobFields.flatMap((field) => found?.record.output[field])) // `shards` is a list
    .flatMap((digest) => (typeof digest === 'string' && digestPattern.test(digest) ? [keys.blob(runId, digest)] : []));
}
