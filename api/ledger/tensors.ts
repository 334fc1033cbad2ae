/**
 * Reads safetensors: eight bytes of length, a JSON header, then the data, which the tensors must cover without gap or
 * overlap.
 */
import { at } from './at.ts';

export class DamagedTensors extends Error {}

export interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Counted from the end of the header. */
  readonly begin: number;
  readonly end: number;
}

export interface Tensors {
  readonly entries: ReadonlyMap<string, Tensor>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Offset where the data begins. */
  readonly start: number;
  /** The whole object; empty when only the header was read. */
  readonly bytes: Uint8Array;
}

const widths: Readonly<Record<string, number>> = { U8: 1, BF16: 2, I32: 4, F32: 4 };
const maxHeader = 100_000_000;

/** Size of the header, from the first eight bytes and the size of the object. */
export function headerOf(first: Uint8Array, size: number): number {
  if (first.byteLength < 8) throw new DamagedTensors(`${size} bytes: too short`);
  const length = new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true);
  if (length < 2n || length > BigInt(Math.min(maxHeader, size - 8)))
    throw new DamagedTensors(`its header claims ${length} bytes of ${size}`);
  return Number(length);
}

/** Reads a whole object, or, with `only`, just the bytes of its header. */
export function readTensors(bytes: Uint8Array, only?: { readonly length: number; readonly size: number }): Tensors {
  const size = only?.size ?? bytes.byteLength;
  const length = only?.length ?? headerOf(bytes.subarray(0, 8), size);
  const json = only === undefined ? bytes.subarray(8, 8 + length) : bytes;
  const header: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
  if (typeof header !== 'object' || header === null || Array.isArray(header))
    throw new DamagedTensors('its header is not an object');
  const { __metadata__: metadata = {}, ...named } = header as Record<string, unknown>;
  const entries = new Map(Object.entries(named).map(([name, value]) => [name, entryOf(name, value)]));
  checkTiling([...entries.values()], size - 8 - length);
  return {
    entries,
    metadata: metadata as Record<string, string>,
    start: 8 + length,
    bytes: only === undefined ? bytes : new Uint8Array(),
  };
}

function entryOf(name: string, value: unknown): Tensor {
  const {
    dtype,
    shape,
    data_offsets: offsets,
  } = (value ?? {}) as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  const width = widths[String(dtype)];
  if (width === undefined) throw new DamagedTensors(`tensor ${name}: type ${String(dtype)}`);
  if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2)
    throw new DamagedTensors(`tensor ${name}: no shape or place`);
  const [begin = 0, end = 0] = offsets;
  if (end - begin !== shape.reduce((a, b) => a * b, width))
    throw new DamagedTensors(`tensor ${name}: ${end - begin} bytes do not fit its shape`);
  return { dtype: String(dtype), shape, begin, end };
}

function checkTiling(tensors: readonly Tensor[], dataBytes: number): void {
  let at = 0;
  for (const { begin, end } of [...tensors].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at) throw new DamagedTensors(`bytes ${at} to ${begin} belong to no tensor, or to two`);
    at = end;
  }
  if (at !== dataBytes) throw new DamagedTensors(`its tensors take ${at} bytes of ${dataBytes}`);
}

const isCounts = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && (one as number) >= 0);

/** Length of a tensor of one dimension. */
export function lengthOf(tensors: Tensors, name: string): number {
  return needed(tensors, name).shape.reduce((a, b) => a * b, 1);
}

export function integers(tensors: Tensors, name: string): Int32Array {
  return new Int32Array(dataOf(tensors, name, 'I32'));
}

/** The floats of a tensor as bits, because log-probs must be equal bit by bit. */
export function floatBits(tensors: Tensors, name: string): Int32Array {
  return new Int32Array(dataOf(tensors, name, 'F32'));
}

export function octets(tensors: Tensors, name: string): Uint8Array {
  return new Uint8Array(dataOf(tensors, name, 'U8'));
}

/** Offsets of consecutive ranges: they start at 0, never fall, and end at `end`. */
export function offsets(tensors: Tensors, name: string, end: number): Int32Array {
  const found = integers(tensors, name);
  const rises = found.every((value, i) => i === 0 || value >= at(found, i - 1));
  if (found[0] !== 0 || !rises || found.at(-1) !== end)
    throw new DamagedTensors(`${name}: expected offsets from 0 to ${end}, found ${found[0]} to ${found.at(-1)}`);
  return found;
}

function dataOf(tensors: Tensors, name: string, dtype: string): ArrayBuffer {
  const tensor = needed(tensors, name);
  if (tensor.dtype !== dtype) throw new DamagedTensors(`tensor ${name}: expected ${dtype}, found ${tensor.dtype}`);
  return new Uint8Array(tensors.bytes.subarray(tensors.start + tensor.begin, tensors.start + tensor.end)).buffer;
}

function needed(tensors: Tensors, name: string): Tensor {
  const tensor = tensors.entries.get(name);
  if (tensor === undefined) throw new DamagedTensors(`tensor ${name} is missing`);
  return tensor;
}
