/** A batch in the store: written as one object or in shards, and read as an update comes to its micro-batches. */
import { at } from '../../../core/at.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import type { BatchRecord } from '../../../core/records/schema.ts';
import { getBlob, putBlob, requireBlobs } from '../../../log/objects/blobs.ts';
import {
  batchBytes,
  checkShard,
  decodeIndex,
  divideBatch,
  encodeIndex,
  indexOf,
  shardOf,
} from '../../../models/batch-shards.ts';
import type { BatchIndex } from '../../../models/batch-shards.ts';
import { decodeBatch, encodeBatch } from '../../../models/batch-tensors.ts';
import type { BatchOrigin, BatchTensors } from '../../../models/batch-tensors.ts';

/** A committed batch as an update reads it. */
export interface ReadableBatch {
  readonly index: BatchIndex;
  /** Micro-batch m, counted over all steps. */
  micro(m: number): Promise<MicroPlace>;
}

/** A micro-batch in the tensors that hold it: the whole batch, or a shard. */
export interface MicroPlace {
  readonly tensors: BatchTensors;
  /** Its samples in these tensors, in packed order. */
  readonly samples: Int32Array;
}

/** What a record says of where a batch is. */
type Named = Pick<BatchRecord, 'tensors' | 'shards'>;

/** How a batch is divided. */
export interface Division {
  readonly epochs: number;
  /** Bytes of the tensors of one object. */
  readonly mostBytes: number;
}

/** Writes the batch; resolves with what its record names. One shard is in memory beside the batch. */
export async function storeBatch(
  store: Store,
  runId: RunId,
  batch: BatchTensors,
  origin: BatchOrigin,
  { epochs, mostBytes }: Division,
): Promise<{ readonly tensors: Digest; readonly shards?: Digest[] }> {
  if (batchBytes(batch) <= mostBytes) return { tensors: await putBlob(store, runId, encodeBatch(batch, origin)) };
  const ranges = divideBatch(batch, epochs, mostBytes);
  const shards: Digest[] = [];
  for (const range of ranges) shards.push(await putBlob(store, runId, encodeBatch(shardOf(batch, range), origin)));
  const shardMicros_K1 = Int32Array.from([0, ...ranges.map(({ to }) => to)]);
  const index = encodeIndex(indexOf(batch, shardMicros_K1), origin);
  return { tensors: await putBlob(store, runId, index), shards };
}

/**
 * Opens a batch. All shards are in the store when this returns; they are read, and checked by their digests, when their
 * micro-batches are asked for. `where`: the record's key. Throws PauseError `MissingBlob`, `DamagedBlob` or
 * `DamagedRecord`.
 */
export async function openBatch(store: Store, runId: RunId, named: Named, where: string): Promise<ReadableBatch> {
  const { tensors, shards } = named;
  const bytes = await getBlob(store, runId, tensors);
  if (shards === undefined) return wholeBatch(decodeBatch(bytes, where));
  await requireBlobs(store, runId, new Set(shards));
  const index = decodeIndex(bytes, where, shards.length);
  return new BatchInShards(index, async (k) => {
    const shard = decodeBatch(await getBlob(store, runId, at(shards, k)), where);
    checkShard(shard, index, k, where);
    return shard;
  });
}

/** A batch that is in memory. */
export function wholeBatch(tensors: BatchTensors): ReadableBatch {
  const index = indexOf(tensors);
  return { index, micro: (m) => Promise.resolve({ tensors, samples: samplesOf(index, m) }) };
}

const samplesOf = ({ microSamples, microOffsets_M1 }: BatchIndex | BatchTensors, m: number): Int32Array =>
  microSamples.subarray(at(microOffsets_M1, m), at(microOffsets_M1, m + 1));

/** Keeps the shard in use, and reads the next one beside it. */
class BatchInShards implements ReadableBatch {
  readonly index: BatchIndex;
  readonly #read: (k: number) => Promise<BatchTensors>;
  readonly #kept = new Map<number, Promise<BatchTensors>>();

  constructor(index: BatchIndex, read: (k: number) => Promise<BatchTensors>) {
    this.index = index;
    this.#read = read;
  }

  async micro(m: number): Promise<MicroPlace> {
    const { shardMicros_K1 } = this.index;
    const k = shardMicros_K1.findIndex((first) => first > m) - 1;
    const tensors = await this.#shard(k);
    return { tensors, samples: samplesOf(tensors, m - at(shardMicros_K1, k)) };
  }

  async #shard(k: number): Promise<BatchTensors> {
    for (const other of this.#kept.keys()) if (other !== k && other !== k + 1) this.#kept.delete(other);
    const shard = await this.#reading(k);
    const { shardMicros_K1 } = this.index;
    const hasNext = k + 2 < shardMicros_K1.length && at(shardMicros_K1, k + 1) < at(shardMicros_K1, k + 2);
    if (hasNext) this.#reading(k + 1).catch(() => {}); // its reader learns why
    return shard;
  }

  #reading(k: number): Promise<BatchTensors> {
    const known = this.#kept.get(k);
    if (known !== undefined) return known;
    const reading = this.#read(k);
    this.#kept.set(k, reading);
    reading.catch(() => this.#kept.delete(k));
    return reading;
  }
}

/** Values of response tokens, [T] of the whole batch. */
type OfTokens = Pick<BatchTensors, 'advantages_T' | 'returns_T'>;

/** The batch with these values in place of its own. */
export function withTokens(batch: ReadableBatch, values: OfTokens): ReadableBatch {
  const { index } = batch;
  const changed = new WeakMap<BatchTensors, BatchTensors>();
  const withOwn = (tensors: BatchTensors): BatchTensors => {
    const known = changed.get(tensors) ?? { ...tensors, ...tokensIn(tensors, index, values) };
    changed.set(tensors, known);
    return known;
  };
  return {
    index,
    micro: async (m) => {
      const { tensors, samples } = await batch.micro(m);
      return { tensors: withOwn(tensors), samples };
    },
  };
}

function tokensIn(
  { places_S, scoredOffsets_S1, scored_T }: BatchTensors,
  index: BatchIndex,
  values: OfTokens,
): OfTokens {
  if (places_S === undefined) return values;
  const of = (values_T: Float32Array): Float32Array => {
    const own_T = new Float32Array(scored_T.length);
    places_S.forEach((b, i) => {
      const row = values_T.subarray(at(index.scoredOffsets_S1, b), at(index.scoredOffsets_S1, b + 1));
      own_T.set(row, at(scoredOffsets_S1, i));
    });
    return own_T;
  };
  return { advantages_T: of(values.advantages_T), returns_T: of(values.returns_T) };
}
