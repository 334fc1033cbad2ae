/** Small tensors in memory: trajectories and other blobs of a few MiB. */
import { InvalidInputError } from '../../core/errors.ts';
import { type dtypeBytes, elements, headerLength, layOut, parseHeader } from './header.ts';

/** A tensor's data by its type. F16 and BF16 are bits; BOOL is one byte per value, 0 or 1. */
export type TensorData =
  | { readonly dtype: 'F32'; readonly data: Float32Array }
  | { readonly dtype: 'BF16' | 'F16'; readonly data: Uint16Array }
  | { readonly dtype: 'I32'; readonly data: Int32Array }
  | { readonly dtype: 'I64'; readonly data: BigInt64Array }
  | { readonly dtype: 'U8' | 'BOOL'; readonly data: Uint8Array };

export type MemoryTensor = TensorData & { readonly shape: readonly number[] };

/** The same tensors and metadata give the same bytes, whatever the order of the keys. */
export function encodeSafetensors(
  tensors: Readonly<Record<string, MemoryTensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const pieces = safetensorsPieces(tensors, metadata);
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}

/**
 * The same file as pieces over the tensors' own memory, without copies; the tensors must not change before it is
 * written.
 */
export function safetensorsPieces(
  tensors: Readonly<Record<string, MemoryTensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array[] {
  const specs = Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
    if (elements(shape) !== data.length) {
      throw new InvalidInputError(
        `safetensors: tensor ${name} of shape [${shape.join(', ')}] needs ${elements(shape)} values, found ${data.length}`,
      );
    }
    return { name, dtype, shape };
  });
  const { header, tensors: placed } = layOut(specs, metadata);
  const data = placed.map(({ name }) => (tensors[name] as MemoryTensor).data);
  return [header, ...data.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength))];
}

export interface DecodedSafetensors {
  readonly tensors: ReadonlyMap<string, MemoryTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Copies the tensors out of `bytes`. Throws InvalidInputError for anything but a complete, valid file of the types
 * above.
 */
export function decodeSafetensors(bytes: Uint8Array, where = 'safetensors'): DecodedSafetensors {
  const length = headerLength(bytes.subarray(0, 8), bytes.length, where);
  const header = parseHeader(bytes.subarray(8, 8 + length), bytes.length - 8 - length, where);
  const tensors = new Map<string, MemoryTensor>();
  for (const { name, dtype, shape, begin, end } of header.tensors) {
    const raw = bytes.slice(header.dataStart + begin, header.dataStart + end);
    tensors.set(name, { ...typed(name, dtype, raw, where), shape });
  }
  return { tensors, metadata: header.metadata };
}

function typed(name: string, dtype: keyof typeof dtypeBytes, raw: Uint8Array, where: string): TensorData {
  const { buffer } = raw;
  switch (dtype) {
    case 'F32':
      return { dtype, data: new Float32Array(buffer, raw.byteOffset, raw.length / 4) };
    case 'BF16':
    case 'F16':
      return { dtype, data: new Uint16Array(buffer, raw.byteOffset, raw.length / 2) };
    case 'I32':
      return { dtype, data: new Int32Array(buffer, raw.byteOffset, raw.length / 4) };
    case 'I64':
      return { dtype, data: new BigInt64Array(buffer, raw.byteOffset, raw.length / 8) };
    case 'BOOL':
      if (raw.some((value) => value > 1))
        throw new InvalidInputError(`${where}: tensor ${name}: a BOOL must be 0 or 1`, { where });
      return { dtype, data: raw };
    case 'U8':
      return { dtype, data: raw };
    default:
      throw new InvalidInputError(
        `${where}: tensor ${name}: dtype ${dtype} is not supported; supported: F32, BF16, F16, I32, I64, U8, BOOL`,
        { where },
      );
  }
}
