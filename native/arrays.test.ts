import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { convertBf16, convertFp16, mapFile, roundBf16, roundFp16 } from './index.ts';
import { randomOf } from './testing/decoders.ts';

const bytesOf = (bits: Uint16Array): Uint8Array => new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength);
const everyBits = Uint16Array.from({ length: 65536 }, (_, i) => i);

test('every bf16 and fp16 survives the way to fp32 and back, NaN as some NaN', () => {
  for (const [widen, round, exponent] of [
    [convertBf16, roundBf16, 0x7f80],
    [convertFp16, roundFp16, 0x7c00],
  ] as const) {
    const wide = new Float32Array(65536);
    widen(bytesOf(everyBits), wide);
    const back = round(wide);
    everyBits.forEach((bits, i) => {
      if ((bits & 0x7fff) > exponent) expect(Number.isNaN(wide[i])).toBe(true);
      else if (back[i] !== bits) expect.fail(`${bits} became ${back[i]}`);
    });
  }
});

test('rounding is to the nearest, ties to even', () => {
  expect([...roundBf16(Float32Array.of(1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20))]).toEqual([
    0x3f80, 0x3f82, 0x3f81,
  ]);
  expect([
    ...roundFp16(
      Float32Array.of(
        1 + 2 ** -11,
        1 + 3 * 2 ** -11,
        65519,
        65520,
        2 ** -25,
        2 ** -25 * 1.01,
        2 ** -14 * (1 - 2 ** -12),
      ),
    ),
  ]).toEqual([0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 1, 0x0400]);
});

test('conversion reads from any byte, odd ones too, seed 3', () => {
  const random = randomOf(3);
  const values = Float32Array.from({ length: 37 }, () => random() - 0.5);
  const bits = roundBf16(values);
  const shifted = new Uint8Array(2 * 37 + 1);
  shifted.set(bytesOf(bits), 1);
  const [plain, odd] = [new Float32Array(37), new Float32Array(37)];
  convertBf16(bytesOf(bits), plain);
  convertBf16(shifted.subarray(1), odd);
  expect(odd).toEqual(plain);
  expect(() => convertBf16(shifted, odd)).toThrow('75 bytes');
});

test('a mapped file has the bytes of the file, and a missing one is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-map-'));
  writeFileSync(join(folder, 'a'), 'some bytes');
  writeFileSync(join(folder, 'empty'), '');
  expect(Buffer.from(mapFile(join(folder, 'a'))).toString()).toBe('some bytes');
  expect(mapFile(join(folder, 'empty')).length).toBe(0);
  expect(() => mapFile(join(folder, 'absent'))).toThrow('absent');
  rmSync(folder, { recursive: true });
});
