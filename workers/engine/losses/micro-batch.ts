/** Cuts the samples of one micro-batch out of a batch, packed one after the other. */
import { at } from '../../../core/at.ts';
import { offsetsOf } from '../../../core/offsets.ts';
import { columnsAt } from '../../../core/token-columns.ts';
import type { PackedBatch } from '../../../core/ports/policy.ts';
import type { BatchLayout } from '../../../core/records/schema.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';

/** The tokens of a batch, and which of them are scored. */
type SampleTensors = Pick<BatchTensors, 'tokens_N' | 'offsets_S1' | 'scored_T' | 'scoredOffsets_S1' | 'tokenColumns'>;

export interface MicroBatch {
  /** Indices of the samples, in packed order. */
  readonly samples: Int32Array;
  readonly packed: PackedBatch & { readonly targets_P: Int32Array };
  /** The index t in the batch's [T] arrays, for each scored position. */
  readonly tokens_P: Int32Array;
  /** Rows of the scored tokens by sample, for losses that depend on whole sequences. */
  readonly rowOffsets_S1: Int32Array;
}

/**
 * `samples`: sample indices in packed order. A scored token is predicted at the position before it. In the layout
 * `prefixTree` neighbours with the same prompt share one copy of it: a sequence of its own, which their responses
 * continue.
 */
export function cutMicroBatch(
  batch: SampleTensors,
  samples: Int32Array,
  layout: BatchLayout | undefined = 'flat',
): MicroBatch {
  const pack = new Packing(samples.reduce((tokens, b) => tokens + span(batch.offsets_S1, b), 0));
  const rowOffsets_S1 = offsetsOf(Array.from(samples, (b) => span(batch.scoredOffsets_S1, b)));
  const positions_P = new Int32Array(at(rowOffsets_S1, -1));
  const targets_P = new Int32Array(positions_P.length);
  const tokens_P = new Int32Array(positions_P.length);
  let shared: Shared | undefined;
  samples.forEach((b, i) => {
    const [start, end] = [at(batch.offsets_S1, b), at(batch.offsets_S1, b + 1)];
    let positionOf: (token: number) => number;
    if (layout === 'prefixTree') {
      const prompt = batch.tokens_N.subarray(start, start + promptLength(batch, b));
      if (shared === undefined || !isEqual(shared.prompt, prompt)) shared = { prompt, ...pack.add(prompt, -1) };
      positionOf = pack.addResponse(batch.tokens_N.subarray(start + prompt.length, end), shared);
    } else {
      const own = pack.add(batch.tokens_N.subarray(start, end), -1);
      positionOf = (token) => own.start + token;
    }
    let p = at(rowOffsets_S1, i);
    const scoredEnd = at(batch.scoredOffsets_S1, b + 1);
    for (let t = at(batch.scoredOffsets_S1, b); t < scoredEnd; t++, p++) {
      const scored = tokenAt(batch.scored_T, t);
      positions_P[p] = positionOf(scored - start - 1);
      targets_P[p] = tokenAt(batch.tokens_N, scored);
      tokens_P[p] = t;
    }
  });
  const columns_P = batch.tokenColumns && columnsAt(batch.tokenColumns, tokens_P);
  const packed = { ...pack.sequences(), positions_P, targets_P, ...(columns_P && { columns_P }) };
  return { packed, samples, tokens_P, rowOffsets_S1 };
}

/** A prompt in a packed batch: the index of its sequence, and where it starts. */
interface Shared {
  readonly prompt: Int32Array;
  readonly index: number;
  readonly start: number;
}

/** Sequences side by side. */
class Packing {
  readonly #tokens_N: Int32Array;
  readonly #cuSeqlens = [0];
  readonly #parents_S: number[] = [];

  /** `most`: tokens of all sequences, or more. */
  constructor(most: number) {
    this.#tokens_N = new Int32Array(most);
  }

  add(tokens: Int32Array, parent: number): { readonly index: number; readonly start: number } {
    const start = at(this.#cuSeqlens, -1);
    this.#tokens_N.set(tokens, start);
    this.#cuSeqlens.push(start + tokens.length);
    return { index: this.#parents_S.push(parent) - 1, start };
  }

  /** Returns where a token of prompt and response lies, by its index in both together. */
  addResponse(response: Int32Array, { prompt, index, start }: Shared): (token: number) => number {
    const own = response.length === 0 ? undefined : this.add(response, index);
    return (token) => (own === undefined || token < prompt.length ? start + token : own.start + token - prompt.length);
  }

  sequences(): Pick<PackedBatch, 'tokens_N' | 'cuSeqlens' | 'parents_S'> {
    const cuSeqlens = Int32Array.from(this.#cuSeqlens);
    const tokens_N = this.#tokens_N.slice(0, at(cuSeqlens, -1));
    const isFlat = this.#parents_S.every((parent) => parent < 0);
    return { tokens_N, cuSeqlens, ...(!isFlat && { parents_S: Int32Array.from(this.#parents_S) }) };
  }
}

/** Tokens before the first response token. */
function promptLength(batch: SampleTensors, b: number): number {
  const first = at(batch.scoredOffsets_S1, b);
  const start = at(batch.offsets_S1, b);
  return span(batch.scoredOffsets_S1, b) === 0 ? span(batch.offsets_S1, b) : at(batch.scored_T, first) - start;
}

function isEqual(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((token, i) => token === b[i]);
}

/** The values of a [T] array at the micro-batch's tokens. */
export function gather(values_T: Float32Array | Uint8Array, tokens_P: Int32Array): Float32Array {
  const values_P = new Float32Array(tokens_P.length);
  for (let p = 0; p < values_P.length; p++) values_P[p] = valueOf(values_T, tokens_P[p] as number);
  return values_P;
}

// As fast as plain indexing, which `at` is not, because it reads arrays of every kind (core/rl/float64.ts).

function tokenAt(values: Int32Array, index: number): number {
  const value = values[index];
  if (value === undefined) throw new RangeError(`no element ${index} in ${values.length} values`);
  return value;
}

function valueOf(values_T: Float32Array | Uint8Array, t: number): number {
  const value = values_T[t];
  if (value === undefined) throw new RangeError(`no element ${t} in ${values_T.length} values`);
  return value;
}

function span(offsets: Int32Array, index: number): number {
  return at(offsets, index + 1) - at(offsets, index);
}
