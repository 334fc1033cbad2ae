/**
 * The safetensors header: eight bytes of length, then JSON `{name: {dtype, shape, data_offsets}, __metadata__?}`,
 * then the data. Parsing is strict, as in the Rust library: the tensors must tile the data exactly, without gap or
 * overlap.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { isObject, show } from '../fields.ts';

/**
 * Bytes per element. The order of the keys is the library's order of types (wider ones are stored first). Types that no
 * model here has are known, too: a tensor of one is refused by its name and type, not its whole file.
 */
export const dtypeBytes = {
  BOOL: 1,
  F4: 1 / 2,
  F6_E2M3: 3 / 4,
  F6_E3M2: 3 / 4,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  F8_E8M0: 1,
  F8_E4M3FNUZ: 1,
  F8_E5M2FNUZ: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  F64: 8,
  I64: 8,
  U64: 8,
  C64: 8,
} as const;

export type Dtype = keyof typeof dtypeBytes;

const dtypeOrder = Object.keys(dtypeBytes);

/** Position of a tensor: `begin` and `end` are bytes from the start of the data (after the header). */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

export interface Header {
  /** Tensors in the order of the data. */
  readonly tensors: readonly TensorEntry[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Start of the data in the file. */
  readonly dataStart: number;
}

/** The Rust library refuses longer headers too. */
const maxHeaderBytes = 100_000_000;

/** The header's length from the first eight bytes, checked against the file's size. */
export function headerLength(first8: Uint8Array, fileBytes: number, where: string): number {
  if (first8.length < 8) throw damaged(where, `expected at least 8 bytes, found ${first8.length}`);
  const length = new DataView(first8.buffer, first8.byteOffset, 8).getBigUint64(0, true);
  if (length < 2n || length > BigInt(maxHeaderBytes) || length > BigInt(fileBytes - 8)) {
    throw damaged(where, `the header claims ${length} bytes, the file has ${fileBytes}`);
  }
  return Number(length);
}

/** Parses the JSON part. `dataBytes`: how many bytes follow the header. Throws InvalidInputError. */
export function parseHeader(json: Uint8Array, dataBytes: number, where: string): Header {
  const parsed = parseJson(json, where);
  const tensors: TensorEntry[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(parsed)) {
    // Some writers leave null there; the Rust library takes it for no metadata.
    if (name === '__metadata__') metadata = value === null ? {} : readMetadata(value, where);
    else tensors.push(readEntry(name, value, where));
  }
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = 0;
  for (const tensor of tensors) {
    if (tensor.begin !== at)
      throw damaged(where, `tensor ${tensor.name} starts at byte ${tensor.begin}, expected ${at}`);
    at = tensor.end;
  }
  if (at !== dataBytes)
    throw damaged(where, `the tensors take ${at} bytes, the file has ${dataBytes} after its header`);
  return { tensors, metadata, dataStart: 8 + json.length };
}

/** A tensor before it has a position. */
export type TensorSpec = Pick<TensorEntry, 'name' | 'dtype' | 'shape'>;

/** Lays tensors out as the Rust library does (widest type first, then names ascending) and writes length and header. */
export function layOut(
  specs: readonly TensorSpec[],
  metadata: Readonly<Record<string, string>> = {},
): { header: Uint8Array; tensors: TensorEntry[] } {
  const order = [...specs].sort(
    (a, b) =>
      dtypeOrder.indexOf(b.dtype) - dtypeOrder.indexOf(a.dtype) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  );
  let at = 0;
  const tensors = order.map(({ name, dtype, shape }) => {
    const begin = at;
    at += elements(shape) * dtypeBytes[dtype];
    return { name, dtype, shape, begin, end: at };
  });
  return { header: encodeHeader(tensors, metadata), tensors };
}

export function elements(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function encodeHeader(tensors: readonly TensorEntry[], metadata: Readonly<Record<string, string>>): Uint8Array {
  const parts: string[] = [];
  const keys = Object.keys(metadata).sort();
  if (keys.length > 0) {
    parts.push(
      `"__metadata__":{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(metadata[key])}`).join(',')}}`,
    );
  }
  const seen = new Set<string>(['__metadata__']);
  for (const { name, dtype, shape, begin, end } of tensors) {
    if (seen.has(name))
      throw new InvalidInputError(`safetensors: a tensor cannot be named ${show(name)}: the name is taken`);
    seen.add(name);
    parts.push(`${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`);
  }
  const json = new TextEncoder().encode(`{${parts.join(',')}}`);
  const padded = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + padded).fill(0x20, 8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(json, 8);
  return bytes;
}

function parseJson(json: Uint8Array, where: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json));
  } catch (cause) {
    throw damaged(where, 'the header is not valid JSON', cause);
  }
  if (!isObject(parsed)) throw damaged(where, 'the header is not a JSON object');
  return parsed;
}

function readEntry(name: string, value: unknown, where: string): TensorEntry {
  if (!isObject(value))
    throw damaged(where, `tensor ${name}: expected {dtype, shape, data_offsets}, found ${show(value)}`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== 'string' || !Object.hasOwn(dtypeBytes, dtype)) {
    throw damaged(where, `tensor ${name}: dtype ${show(dtype)} is not known; known: ${dtypeOrder.join(', ')}`);
  }
  if (!isCounts(shape)) throw damaged(where, `tensor ${name}: shape must be a list of sizes, found ${show(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw damaged(where, `tensor ${name}: data_offsets must be two byte positions, found ${show(offsets)}`);
  }
  const [begin, end] = offsets as readonly [number, number];
  const bytes = elements(shape) * dtypeBytes[dtype as Dtype];
  if (!Number.isSafeInteger(bytes) || end - begin !== bytes) {
    throw damaged(
      where,
      `tensor ${name}: ${dtype} of shape ${show(shape)} takes ${bytes} bytes, data_offsets ${show(offsets)} give ${end - begin}`,
    );
  }
  return { name, dtype: dtype as Dtype, shape, begin, end };
}

function readMetadata(value: unknown, where: string): Record<string, string> {
  if (!isObject(value)) throw damaged(where, '__metadata__ must be an object of strings');
  const metadata: Record<string, string> = {};
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') throw damaged(where, `__metadata__.${key} must be a string, found ${show(text)}`);
    Object.defineProperty(metadata, key, { value: text, enumerable: true, writable: true, configurable: true });
  }
  return metadata;
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
}

function damaged(where: string, reason: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(`${where}: not a valid safetensors file: ${reason}`, { where, cause });
}
