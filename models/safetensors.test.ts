import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../core/errors.ts';
import { parseHeader } from './safetensors/header.ts';
import {
  type MemoryTensor,
  decodeSafetensors,
  encodeSafetensors,
  openSafetensors,
  roundToBf16,
  widenBf16,
  widenF16,
} from './safetensors.ts';

const sample: Record<string, MemoryTensor> = {
  tokens: { dtype: 'I32', shape: [3], data: Int32Array.of(5, -6, 7) },
  logProbs: { dtype: 'F32', shape: [1, 2], data: Float32Array.of(-0.5, NaN) },
  half: { dtype: 'BF16', shape: [2], data: Uint16Array.of(0x3f80, 0) },
  offsets: { dtype: 'I64', shape: [2], data: BigInt64Array.of(0n, 3n) },
  mask: { dtype: 'BOOL', shape: [3], data: Uint8Array.of(1, 0, 1) },
  raw: { dtype: 'U8', shape: [0], data: new Uint8Array() },
  scalar: { dtype: 'F16', shape: [], data: Uint16Array.of(0x3c00) },
};

describe('in memory', () => {
  it('returns the same tensors and metadata', () => {
    const { tensors, metadata } = decodeSafetensors(encodeSafetensors(sample, { b: '2', a: '1' }));
    expect(Object.fromEntries(tensors)).toEqual(sample);
    expect(metadata).toEqual({ a: '1', b: '2' });
  });

  it('writes the same bytes for any order of keys, with data aligned to 8', () => {
    const reversed = Object.fromEntries(Object.entries(sample).reverse());
    const bytes = encodeSafetensors(sample);
    expect(encodeSafetensors(reversed)).toEqual(bytes);
    expect(new DataView(bytes.buffer).getUint32(0, true) % 8).toBe(0);
  });

  it('refuses a tensor whose shape does not fit', () => {
    expect(() => encodeSafetensors({ x: { dtype: 'F32', shape: [2], data: new Float32Array(3) } })).toThrow(
      /needs 2 values, found 3/,
    );
  });
});

/** A file from a header object and a number of data bytes. */
function file(header: unknown, dataBytes: number): Uint8Array {
  const json = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

/** Headers that the reference reader takes (safetensors 0.8.0 of PyPI, `deserialize`). */
describe('a header as other writers make it', () => {
  const entry = (begin: number, end: number, dtype = 'F32', shape = [1]) => ({
    dtype,
    shape,
    data_offsets: [begin, end],
  });
  const one = JSON.stringify({ a: entry(0, 4) });
  it.each<[string, Uint8Array]>([
    ['__metadata__: null', file({ __metadata__: null, a: entry(0, 4) }, 4)],
    ['empty metadata', file({ __metadata__: {}, a: entry(0, 4) }, 4)],
    ['blanks after it', file(`${one}   `, 4)],
    ['a line end and a tab after it', file(`${one}\n\t`, 4)],
    ['blanks before it', file(`  ${one}`, 4)],
    ['no tensors', file({}, 0)],
    ['a tensor without elements at the end', file({ a: entry(0, 4), z: entry(4, 4, 'F32', [0]) }, 4)],
    ['one in the middle', file({ a: entry(0, 4), z: entry(4, 4, 'F32', [0, 3]), b: entry(4, 8) }, 8)],
    ['one at the start', file({ z: entry(0, 0, 'F32', [0]), a: entry(0, 4) }, 4)],
    ['a field of its own', file({ a: { ...entry(0, 4), more: 1 } }, 4)],
    ['a name twice, of which the last stands', file(`{"a":${one.slice(5, -1)},"a":${one.slice(5, -1)}}`, 4)],
  ])('is read: %s', (_, bytes) => expect(() => decodeSafetensors(bytes)).not.toThrow());

  it.each([
    ['F8_E4M3', 1, [1]],
    ['F8_E8M0', 1, [1]],
    ['F8_E4M3FNUZ', 1, [1]],
    ['C64', 8, [1]],
    ['F4', 1, [2]],
    ['F6_E2M3', 3, [4]],
  ])('has a tensor of type %s, which is refused only when it is read', (dtype, bytes, shape) => {
    const header = { a: entry(0, bytes, dtype, shape) };
    const json = new TextEncoder().encode(JSON.stringify(header));
    expect(parseHeader(json, bytes, 'x').tensors).toMatchObject([{ dtype }]);
    expect(() => decodeSafetensors(file(header, bytes))).toThrow(new RegExp(dtype));
  });

  it.each<[string, Uint8Array]>([
    ['a null in the metadata', file({ __metadata__: { a: null } }, 0)],
    ['a list as metadata', file({ __metadata__: [] }, 0)],
    ['a zero byte after it', file(`${one}\0`, 4)],
    ['a byte order mark', file(`\ufeff${one}`, 4)],
    ['half a byte of F4', file({ a: entry(0, 1, 'F4', [1]) }, 1)],
    ['offsets that go back', file({ a: entry(4, 0, 'F32', [0]) }, 4)],
    ['a tensor that is null', file({ a: null }, 0)],
  ])('is refused: %s', (_, bytes) => expect(() => decodeSafetensors(bytes)).toThrow(InvalidInputError));
});

describe('damage', () => {
  const f32 = (begin: number, end: number, shape = [1]): unknown => ({
    dtype: 'F32',
    shape,
    data_offsets: [begin, end],
  });
  it.each<[string, Uint8Array, RegExp]>([
    ['an empty file', new Uint8Array(), /at least 8 bytes/],
    ['a header longer than the file', Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255, 1), /header claims/],
    ['text', file('hello', 0), /not valid JSON/],
    ['a list', file('[1]', 0), /not a JSON object/],
    ['an overlap', file({ a: f32(0, 4), b: f32(0, 4) }, 8), /starts at byte 0, expected 4/],
    ['a gap', file({ a: f32(0, 4), b: f32(8, 12) }, 12), /starts at byte 8, expected 4/],
    ['bytes left over', file({ a: f32(0, 4) }, 8), /take 4 bytes, the file has 8/],
    ['a truncated file', file({ a: f32(0, 4) }, 3), /take 4 bytes, the file has 3/],
    ['a wrong size', file({ a: f32(0, 4, [2]) }, 4), /takes 8 bytes/],
    ['sizes that overflow', file({ a: f32(0, 4, [2 ** 40, 2 ** 40]) }, 4), /takes/],
    ['a negative size', file({ a: f32(0, 4, [-1]) }, 4), /list of sizes/],
    ['an unknown dtype', file({ a: { dtype: 'F31', shape: [1], data_offsets: [0, 4] } }, 4), /F31.*known/],
    ['metadata that is not text', file({ __metadata__: { a: 1 } }, 0), /__metadata__.a must be a string/],
    ['a BOOL of 2', encodeSafetensors({ m: { dtype: 'BOOL', shape: [1], data: Uint8Array.of(2) } }), /must be 0 or 1/],
    ['invalid UTF-8', file({ a: f32(0, 4) }, 4).map((byte, i) => (i === 10 ? 0xff : byte)), /not valid JSON/],
  ])('%s is refused with the reason', (_, bytes, message) => {
    expect(() => decodeSafetensors(bytes)).toThrow(InvalidInputError);
    expect(() => decodeSafetensors(bytes)).toThrow(message);
  });

  it('any changed byte gives the same tensors with another value, or InvalidInputError (property)', () => {
    const bytes = encodeSafetensors(sample);
    const edit = fc.record({ at: fc.nat(bytes.length - 1), value: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), fc.nat(bytes.length), (edits, cut) => {
        const mutated = bytes.slice(0, edits.length === 4 ? cut : undefined);
        for (const { at, value } of edits) if (at < mutated.length) mutated[at] = value;
        try {
          for (const tensor of decodeSafetensors(mutated).tensors.values()) {
            expect(tensor.data.length).toBe(tensor.shape.reduce((a, b) => a * b, 1));
          }
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('number types', () => {
  it('round to bfloat16 to nearest even and widen exactly', () => {
    const source = Float32Array.of(1, 1.00390625, 1.01171875, -0, Infinity, NaN, 3.4028235e38);
    const bits = new Uint16Array(source.length);
    roundToBf16(source, bits);
    const back = new Float32Array(source.length);
    widenBf16(bits, back);
    expect(Array.from(back)).toEqual([1, 1, 1.015625, -0, Infinity, NaN, Infinity]);
  });

  it('widen halves, subnormals too', () => {
    const target = new Float32Array(6);
    widenF16(Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00, 0x7e00, 0x7bff), target);
    expect(Array.from(target)).toEqual([1, -2, 2 ** -24, Infinity, NaN, 65504]);
  });
});

describe('files', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'safetensors-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('are read as in memory, and errors contain the path', async () => {
    const path = join(folder, 'model.safetensors');
    await writeFile(path, encodeSafetensors(sample));
    const source = await openSafetensors(folder);
    for await (const values of source.values('half')) expect([...values]).toEqual([1, 0]);
    await source.close();
    await writeFile(path, encodeSafetensors(sample).subarray(0, -1));
    await expect(openSafetensors(folder)).rejects.toThrow(path);
  });
});
