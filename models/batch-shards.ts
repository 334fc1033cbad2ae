/**
 * A batch in shards: core/records/FORMAT.md, "Batches in shards". A shard is a batch by itself, of neighbouring
 * micro-batches and their samples; the index has what is known of every sample and the plan of the whole.
 *
 * K counts the shards.
 */
import { at } from '../core/at.ts';
import type { TokenColumns } from '../core/token-columns.ts';
import type { BatchOrigin, BatchTensors } from './batch-tensors.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { checkIndices, checkLengths, checkOffsets, misshapen } from './shape-check.ts';
import { f32, f32Of, i32, i32Of } from './trajectories.ts';
import { offsetsOf } from '../core/offsets.ts';

/** Bytes of the tensors of one object: a batch with more is stored in shards. */
export const mostBatchBytes = 256 * 2 ** 20;

/** Tensors with a value for each sample, by their names in a file. */
const ofSamples = {
  rewards_S: 'rewards',
  modelScores_S: 'model_scores',
  groups_S: 'groups',
  accuracies_S: 'accuracies',
  groupQ_S: 'group_q',
  logZ_S: 'log_z',
} as const;

/** Tensors with the same number of values for every response token. */
const ofTokens = [
  'mask_T',
  'advantages_T',
  'returns_T',
  'oldLogProbs_T',
  'refLogProbs_T',
  'rolloutLogProbs_T',
  'teacherLogProbs_T',
  'teacherTopTokens_TK',
  'teacherTopLogProbs_TK',
  'rolloutIsWeights_T',
  'values_T',
] as const;

type Values = Float32Array | Int32Array | Uint8Array;

/** A batch without its tokens: what must be known before its shards are read. */
export type BatchIndex = Pick<
  BatchTensors,
  'offsets_S1' | 'scoredOffsets_S1' | 'stepOffsets_U1' | 'microOffsets_M1' | 'microSamples' | keyof typeof ofSamples
> & {
  /** Response tokens with mask 1 of each sample. */
  readonly valid_S: Int32Array;
  /** Micro-batches of each shard. */
  readonly shardMicros_K1: Int32Array;
};

/** Bytes of its tensors; a file has a header of a few thousand bytes before them. */
export function batchBytes(batch: BatchTensors): number {
  const columns = Object.values(batch.tokenColumns ?? {}).map(({ data }) => data);
  const tensors = Object.values(batch).filter((one): one is Values => ArrayBuffer.isView(one));
  return [...tensors, ...columns].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** The index of a batch whose shards are these ranges of micro-batches; without ranges it is one. */
export function indexOf(batch: BatchTensors, shardMicros_K1?: Int32Array): BatchIndex {
  const { offsets_S1, scoredOffsets_S1, stepOffsets_U1, microOffsets_M1, microSamples } = batch;
  return {
    ...{ offsets_S1, scoredOffsets_S1, stepOffsets_U1, microOffsets_M1, microSamples },
    ...samplesOf(batch, (values) => values),
    rewards_S: batch.rewards_S,
    valid_S: validTokens(batch),
    shardMicros_K1: shardMicros_K1 ?? Int32Array.of(0, microOffsets_M1.length - 1),
  };
}

function validTokens({ mask_T, scoredOffsets_S1 }: BatchTensors): Int32Array {
  const valid_S = new Int32Array(scoredOffsets_S1.length - 1);
  for (let s = 0; s < valid_S.length; s++) {
    const end = at(scoredOffsets_S1, s + 1);
    let valid = 0;
    for (let t = at(scoredOffsets_S1, s); t < end; t++) valid += mask_T[t] as number;
    valid_S[s] = valid;
  }
  return valid_S;
}

/** Neighbouring micro-batches, and the samples that a shard has. */
export interface ShardRange {
  readonly from: number;
  readonly to: number;
  /** Ascending, each once. */
  readonly places_S: Int32Array;
}

/**
 * Divides a batch into shards of at most so many bytes; a micro-batch that takes more is a shard by itself. An epoch
 * begins with a new shard: where epochs are equal, so are their shards, and the store keeps one copy. Samples that no
 * micro-batch has (policy filtration) are in shards of their own, the last ones.
 */
export function divideBatch(batch: BatchTensors, epochs: number, mostBytes: number): ShardRange[] {
  const cost = costs(batch);
  const { microOffsets_M1, microSamples } = batch;
  const micros = microOffsets_M1.length - 1;
  const begins = beginsOfEpochs(batch, epochs);
  const shards = new OpenShard(mostBytes, cost.ofShard);
  for (let m = 0; m < micros; m++) {
    const samples = microSamples.subarray(microOffsets_M1[m], microOffsets_M1[m + 1]);
    shards.add(samples, cost.ofSample, cost.ofMicro + 4 * samples.length, { from: m, to: m + 1 }, begins.has(m));
  }
  const planned = new Set(microSamples);
  for (let b = 0; b < batch.rewards_S.length; b++)
    if (!planned.has(b)) shards.add([b], cost.ofSample, 0, { from: micros, to: micros });
  return shards.all();
}

/** The micro-batches with which epochs begin. All epochs have as many steps. */
function beginsOfEpochs({ stepOffsets_U1 }: BatchTensors, epochs: number): ReadonlySet<number> {
  const steps = (stepOffsets_U1.length - 1) / epochs;
  return new Set(Array.from({ length: epochs }, (_, e) => at(stepOffsets_U1, Math.floor(e * steps))));
}

/** The shard that grows, and those before it. */
class OpenShard {
  readonly #most: number;
  readonly #empty: number;
  readonly #closed: ShardRange[] = [];
  #range: { from: number; to: number } | undefined;
  #places = new Set<number>();
  #bytes = 0;

  constructor(most: number, empty: number) {
    this.#most = most;
    this.#empty = empty;
  }

  /** `own`: bytes beside those of samples that the shard does not have yet. */
  add(
    samples: Iterable<number>,
    bytesOf: (b: number) => number,
    own: number,
    { from, to }: { readonly from: number; readonly to: number },
    isFirst = false,
  ): void {
    const distinct = [...new Set(samples)];
    const more = () => own + sum(distinct.filter((b) => !this.#places.has(b)).map(bytesOf));
    const isOther = this.#range !== undefined && from === to && this.#range.from !== from;
    if (isFirst || isOther || this.#bytes + more() > this.#most) this.#close();
    this.#range ??= { from, to };
    this.#bytes += more();
    this.#range.to = to;
    for (const b of distinct) this.#places.add(b);
  }

  all(): ShardRange[] {
    this.#close();
    return this.#closed;
  }

  #close(): void {
    if (this.#range !== undefined)
      this.#closed.push({ ...this.#range, places_S: Int32Array.from(this.#places).sort() });
    this.#range = undefined;
    this.#places = new Set();
    this.#bytes = this.#empty;
  }
}

/** Bytes of a sample with its tokens, and of what else a shard has. A micro-batch may begin a step. */
function costs(batch: BatchTensors) {
  const { offsets_S1, scoredOffsets_S1 } = batch;
  const tokens = batch.scored_T.length;
  const perToken = tokens === 0 ? 0 : 4 + sum(tensorsOfTokens(batch).map(({ byteLength }) => byteLength / tokens));
  const perSample = 12 + 4 * Object.keys(samplesOf(batch, (values) => values)).length;
  const span = (offsets: Int32Array, b: number) => at(offsets, b + 1) - at(offsets, b);
  return {
    ofSample: (b: number) => 4 * span(offsets_S1, b) + perToken * span(scoredOffsets_S1, b) + perSample,
    ofMicro: 8,
    ofShard: 20,
  };
}

const tensorsOfTokens = (batch: BatchTensors): Values[] => [
  ...ofTokens.flatMap((name) => batch[name] ?? []),
  ...Object.values(batch.tokenColumns ?? {}).map(({ data }) => data),
];

/** A shard as a batch by itself. */
export function shardOf(batch: BatchTensors, { from, to, places_S }: ShardRange): BatchTensors {
  const { microOffsets_M1, microSamples, stepOffsets_U1, offsets_S1, scoredOffsets_S1 } = batch;
  const [first, end] = [at(microOffsets_M1, from), at(microOffsets_M1, to)];
  const local = new Map(Array.from(places_S, (b, i) => [b, i] as const));
  const steps = [...stepOffsets_U1].filter((m) => m > from && m < to);
  const tokens = batch.scored_T.length;
  const gathered = <T extends Values>(values: T, offsets: Int32Array, all: number) =>
    rowsAt(values, offsets, places_S, all === 0 ? 0 : values.length / all);
  const ofToken = <T extends Values>(values: T): T => gathered(values, scoredOffsets_S1, tokens);
  const own = {
    offsets_S1: offsetsAt(offsets_S1, places_S),
    scoredOffsets_S1: offsetsAt(scoredOffsets_S1, places_S),
  };
  const scored_T = ofToken(batch.scored_T);
  places_S.forEach((b, i) => {
    const shift = at(own.offsets_S1, i) - at(offsets_S1, b);
    for (let t = at(own.scoredOffsets_S1, i); t < at(own.scoredOffsets_S1, i + 1); t++)
      scored_T[t] = at(scored_T, t) + shift;
  });
  const tensors = Object.fromEntries(
    ofTokens.flatMap((name) => (batch[name] === undefined ? [] : [[name, ofToken(batch[name])]])),
  ) as Pick<BatchTensors, (typeof ofTokens)[number]>;
  return {
    ...tensors,
    ...own,
    tokens_N: gathered(batch.tokens_N, offsets_S1, batch.tokens_N.length),
    scored_T,
    ...samplesOf(batch, (values) => atPlaces(values, places_S)),
    rewards_S: atPlaces(batch.rewards_S, places_S),
    ...(batch.tokenColumns && { tokenColumns: columnsAt(batch.tokenColumns, ofToken) }),
    stepOffsets_U1: Int32Array.from(to === from ? [0] : [0, ...steps.map((m) => m - from), to - from]),
    microOffsets_M1: microOffsets_M1.slice(from, to + 1).map((offset) => offset - first),
    microSamples: microSamples.slice(first, end).map((b) => local.get(b) as number),
    places_S,
  };
}

function samplesOf(
  batch: BatchTensors,
  change: <T extends Float32Array | Int32Array>(values: T) => T,
): Partial<Pick<BatchTensors, keyof typeof ofSamples>> {
  const names = Object.keys(ofSamples) as (keyof typeof ofSamples)[];
  const found = names.flatMap((name) => (batch[name] === undefined ? [] : [[name, change(batch[name])] as const]));
  return Object.fromEntries(found);
}

const columnsAt = (columns: TokenColumns, ofToken: <T extends Values>(values: T) => T): TokenColumns =>
  Object.fromEntries(Object.entries(columns).map(([name, { data, width }]) => [name, { data: ofToken(data), width }]));

function offsetsAt(offsets: Int32Array, places_S: Int32Array): Int32Array {
  return offsetsOf(Array.from(places_S, (b) => at(offsets, b + 1) - at(offsets, b)));
}

/** The rows of these samples side by side, with `width` values for each of their tokens. */
function rowsAt<T extends Values>(values: T, offsets: Int32Array, places_S: Int32Array, width: number): T {
  const own = offsetsAt(offsets, places_S);
  const rows = emptyLike(values, at(own, -1) * width);
  places_S.forEach((b, i) => {
    rows.set(values.subarray(at(offsets, b) * width, at(offsets, b + 1) * width), at(own, i) * width);
  });
  return rows;
}

function atPlaces<T extends Values>(values: T, places_S: Int32Array): T {
  const found = emptyLike(values, places_S.length);
  places_S.forEach((b, i) => (found[i] = at(values, b)));
  return found;
}

function emptyLike<T extends Values>(values: T, length: number): T {
  const array =
    values instanceof Float32Array
      ? new Float32Array(length)
      : values instanceof Int32Array
        ? new Int32Array(length)
        : new Uint8Array(length);
  return array as T;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

export function encodeIndex(index: BatchIndex, { iteration, parentState }: BatchOrigin): Uint8Array {
  const { groups_S } = index;
  const floats = Object.entries(ofSamples).flatMap(([key, name]) => {
    const values = index[key as keyof typeof ofSamples];
    return values instanceof Float32Array ? [[name, f32(values)] as const] : [];
  });
  return encodeSafetensors(
    {
      ...Object.fromEntries(floats),
      ...(groups_S && { groups: i32(groups_S) }),
      offsets: i32(index.offsets_S1),
      scored_offsets: i32(index.scoredOffsets_S1),
      valid: i32(index.valid_S),
      step_offsets: i32(index.stepOffsets_U1),
      micro_offsets: i32(index.microOffsets_M1),
      micro_samples: i32(index.microSamples),
      shard_micros: i32(index.shardMicros_K1),
    },
    { iteration: String(iteration), parent_state: parentState },
  );
}

/**
 * `shards`: how many the record names. Throws PauseError `DamagedRecord` for anything but the index of such a batch.
 */
export function decodeIndex(bytes: Uint8Array, where: string, shards: number): BatchIndex {
  const file = decodeSafetensors(bytes, where);
  const found = Object.entries(ofSamples).flatMap(([key, name]) => {
    if (!file.tensors.has(name)) return [];
    return [[key, (key === 'groups_S' ? i32Of : f32Of)(file, name, where)] as const];
  });
  const index: BatchIndex = {
    ...Object.fromEntries(found),
    rewards_S: f32Of(file, 'rewards', where),
    offsets_S1: i32Of(file, 'offsets', where),
    scoredOffsets_S1: i32Of(file, 'scored_offsets', where),
    valid_S: i32Of(file, 'valid', where),
    stepOffsets_U1: i32Of(file, 'step_offsets', where),
    microOffsets_M1: i32Of(file, 'micro_offsets', where),
    microSamples: i32Of(file, 'micro_samples', where),
    shardMicros_K1: i32Of(file, 'shard_micros', where),
  };
  checkIndex(index, where, shards);
  return index;
}

function checkIndex(index: BatchIndex, where: string, shards: number): void {
  const samples = index.rewards_S.length;
  const micros = index.microOffsets_M1.length - 1;
  checkOffsets(where, 'offsets', index.offsets_S1, samples, at(index.offsets_S1, -1));
  checkOffsets(where, 'scored_offsets', index.scoredOffsets_S1, samples, at(index.scoredOffsets_S1, -1));
  checkLengths(where, samples, { valid: index.valid_S });
  for (const [key, name] of Object.entries(ofSamples))
    checkLengths(where, samples, { [name]: index[key as keyof typeof ofSamples] });
  checkOffsets(where, 'micro_offsets', index.microOffsets_M1, micros, index.microSamples.length);
  checkOffsets(where, 'step_offsets', index.stepOffsets_U1, index.stepOffsets_U1.length - 1, micros);
  checkOffsets(where, 'shard_micros', index.shardMicros_K1, shards, micros);
  checkIndices(where, 'micro_samples', index.microSamples, samples);
}

/** Throws PauseError `DamagedRecord` unless the shard has the micro-batches that the index says, sample by sample. */
export function checkShard(shard: BatchTensors, index: BatchIndex, k: number, where: string): void {
  const { places_S } = shard;
  if (places_S === undefined) throw misshapen(where, 'tensor places: expected in a shard, found nothing');
  checkIndices(where, 'places', places_S, index.rewards_S.length);
  const [from, to] = [at(index.shardMicros_K1, k), at(index.shardMicros_K1, k + 1)];
  const first = at(index.microOffsets_M1, from);
  if (shard.microOffsets_M1.length !== to - from + 1) throw misshapen(where, `expected ${to - from} micro-batches`);
  for (let m = 0; m <= to - from; m++)
    if (at(shard.microOffsets_M1, m) !== at(index.microOffsets_M1, from + m) - first)
      throw misshapen(where, `micro-batch ${m} has another size than in the index`);
  shard.microSamples.forEach((b, i) => {
    if (at(places_S, b) !== at(index.microSamples, first + i))
      throw misshapen(where, `sample ${i} of its micro-batches is another one than in the index`);
  });
  places_S.forEach((b, i) => {
    const sizes = [shard.offsets_S1, shard.scoredOffsets_S1].map((offsets) => at(offsets, i + 1) - at(offsets, i));
    const known = [index.offsets_S1, index.scoredOffsets_S1].map((offsets) => at(offsets, b + 1) - at(offsets, b));
    if (sizes.join() !== known.join()) throw misshapen(where, `sample ${b} has another size than in the index`);
  });
}
