/**
 * Forging a run's objects: whatever is changed, all that names it by digest is made to agree, so that only the lie is
 * left.
 */
import { rmSync } from 'node:fs';
import type { Store } from '../../core/ports/store.ts';
import { actorOf, mapComponents } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import type { BatchRecord, EvalRecord, TermRecord, UpdateRecord } from '../../core/records/schema.ts';
import { getBlob, putBlob } from '../../log/objects/blobs.ts';
import { sha256 } from '../../log/objects/digest.ts';
import { encodeRecord } from '../../log/objects/records.ts';
import { decodeBatch, encodeBatch } from '../../models/batch-tensors.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';

/** A record as it may be changed. */
export type Writable<T> = T extends readonly (infer I)[]
  ? Writable<I>[]
  : T extends object
    ? { -readonly [K in keyof T]: Writable<T[K]> }
    : T;
type Change<T> = (record: Writable<T>) => void;

export class Forger {
  readonly #store: Store;
  readonly #runId: string;

  constructor(store: Store, runId: string) {
    this.#store = store;
    this.#runId = runId;
  }

  readonly key = {
    batch: (k: number, term = 1) => keys.batch(this.#runId, term, k),
    update: (k: number, term = 1) => keys.update(this.#runId, term, k),
    term: (term = 1) => keys.term(this.#runId, term),
    evaluation: (k: number, term = 1) => keys.evaluation(this.#runId, term, k),
    revision: (n = 1) => keys.revision(this.#runId, n),
    status: (n = 1) => keys.status(this.#runId, n),
    run: () => keys.run(this.#runId),
    blob: (digest: string) => keys.blob(this.#runId, digest),
    result: (jobId: string) => keys.result(this.#runId, jobId),
    checkpoint: (k: number, state: string) => keys.checkpoint(this.#runId, k, state),
    weights: (digest: string) => keys.weights(this.#runId, digest),
  };

  async read<T>(key: string): Promise<Writable<T>> {
    const bytes = await this.#store.get(key);
    if (bytes === undefined) throw new Error(`${key} is not there`);
    const { check: _, ...record } = JSON.parse(new TextDecoder().decode(bytes)) as Writable<T> & { check?: string };
    return record as Writable<T>;
  }

  /** Writes a record in the form of all records. Returns its digest. */
  async write(key: string, record: object): Promise<string> {
    const bytes = encodeRecord(record);
    await this.#store.put(key, bytes);
    return sha256(bytes);
  }

  async change<T>(key: string, change: Change<T>): Promise<string> {
    const record = await this.read<T>(key);
    change(record);
    return this.write(key, record as object);
  }

  remove(...names: readonly string[]): void {
    for (const key of names) rmSync(this.#store.localPath(key) ?? '');
  }

  /** Changes a batch and what made it; every later record gets its new parent digest. */
  async batch(k: number, change: Change<BatchRecord>): Promise<void> {
    const record = await this.read<BatchRecord>(this.key.batch(k));
    change(record);
    await this.write(this.key.batch(k), record);
    const { tensors, shards, oldLogProbs, layout, draws, after, metrics } = record;
    const components = mapComponents(record.components, ({ profile: _, ...trained }) => trained);
    const made = record.results.at(-1) ?? '';
    await this.change<{ output: object }>(this.key.result(made), (result) =>
      Object.assign(result, {
        output: {
          tensors,
          ...(shards && { shards }),
          ...(layout && { layout }),
          oldLogProbs,
          components,
          draws,
          after,
          metrics,
        },
      }),
    );
    await this.chain(k);
  }

  async update(k: number, change: Change<UpdateRecord>): Promise<void> {
    await this.change(this.key.update(k), change);
    await this.chain(k + 1);
  }

  /** Other tensors for a batch. */
  async tensors(k: number, change: (tensors: BatchTensors) => BatchTensors): Promise<void> {
    const { tensors, iteration, parentState } = await this.read<BatchRecord>(this.key.batch(k));
    const bytes = encodeBatch(change(decodeBatch(await getBlob(this.#store, this.#runId, tensors), tensors)), {
      iteration,
      parentState,
    });
    const digest = await putBlob(this.#store, this.#runId, bytes);
    await this.batch(k, (record) => void (record.tensors = digest));
  }

  /** Makes the digests agree from batch k on. */
  async chain(k: number, term = 1): Promise<void> {
    const before = k > 1 ? this.key.update(k - 1, term) : this.key.term(term);
    let parent = sha256((await this.#store.get(before)) ?? '');
    for (let at = k; (await this.#store.head(this.key.batch(at, term))) !== undefined; at++) {
      const digest = await this.change<BatchRecord>(
        this.key.batch(at, term),
        (record) => void (record.parent = parent),
      );
      if ((await this.#store.head(this.key.update(at, term))) === undefined) return;
      parent = await this.change<UpdateRecord>(this.key.update(at, term), (record) => void (record.batch = digest));
    }
  }

  /** Seals the term: nothing can be appended to it after position k. */
  async seal(k: number, term = 1): Promise<void> {
    const last = await this.read<BatchRecord>(this.key.batch(k, term));
    const { format, runId, writer } = last;
    const parent = sha256((await this.#store.get(this.key.update(k, term))) ?? '');
    await this.write(this.key.batch(k + 1, term), {
      format,
      runId,
      term,
      iteration: k + 1,
      parent,
      owner: 'test',
      reason: 'redo',
      writer,
      decision: 'seal',
    });
  }

  /** A term that continues from a position of term 1, with the later batches of term 1, up to `until`. */
  async redo(position: number, until: number, change: Change<TermRecord> = () => {}): Promise<void> {
    const first = await this.read<TermRecord>(this.key.term(1));
    const at = await this.read<UpdateRecord>(this.key.update(position));
    const record = {
      ...first,
      term: 2,
      parent: { term: 1, position, record: sha256((await this.#store.get(this.key.update(position))) ?? '') },
      startState: at.stateDigest,
      components: mapComponents(first.components, ({ profile }, name) => {
        const { stateDigest, weightsDigest } = at.components[name] ?? actorOf(at.components);
        return { stateDigest, weightsDigest, profile };
      }),
      reason: 'redo',
    };
    change(record);
    let parent = await this.write(this.key.term(2), record);
    for (let k = position + 1; k <= until; k++) {
      const batch = await this.read<BatchRecord>(this.key.batch(k));
      const digest = await this.write(this.key.batch(k, 2), { ...batch, term: 2, parent });
      parent = await this.write(this.key.update(k, 2), {
        ...(await this.read<UpdateRecord>(this.key.update(k))),
        term: 2,
        batch: digest,
      });
      if ((await this.#store.head(this.key.evaluation(k))) === undefined) continue;
      await this.write(this.key.evaluation(k, 2), {
        ...(await this.read<EvalRecord>(this.key.evaluation(k))),
        term: 2,
      });
    }
  }
}
