import { expect, test } from 'vitest';
import { InvalidInputError } from '../core/errors.ts';
import { engineInfo, instructionClasses, peakClass, peakProductSeconds, readSeconds } from './index.ts';

const computeTypes = engineInfo().bf16 ? (['fp32', 'bf16'] as const) : (['fp32'] as const);

/** Row counts that need every height of a register tile and of an AMX tile; odd columns and depths. */
const heights = Array.from({ length: 50 }, (_, i) => i + 1);

test.each(computeTypes)('every height of a tile computes the right sums in %s', (compute) => {
  // The addon compares the sums with k, because all factors are 1.
  for (const m of heights)
    for (const [n, k] of [
      [16, 32],
      [40, 65],
      [129, 200],
    ] as const)
      expect(peakProductSeconds({ m, n, k, compute, threads: 2, repeats: 3 })).toBeGreaterThan(0);
});

test.each(computeTypes)('the class of %s is one that the engine names', (compute) => {
  expect(instructionClasses).toContain(peakClass(compute));
  if (compute === 'fp32') expect(peakClass(compute)).toMatch(/^avx(2|512)$/);
  else expect(peakClass(compute)).toMatch(/^(avx512_bf16|amx)$/);
});

test('reading memory reads every value', () => {
  const ones = new Float32Array(4 * 65_536).fill(1);
  expect(readSeconds(ones, 2)).toBeGreaterThan(0);
  ones[3 * 65_536 + 17] = 2;
  expect(() => readSeconds(ones, 2)).toThrow(/not all ones/);
});

test('sizes that cannot be measured are refused', () => {
  const product = { m: 4, n: 16, k: 32, compute: 'fp32', threads: 1, repeats: 1 } as const;
  for (const wrong of [{ m: 0 }, { n: 1.5 }, { k: -1 }, { threads: 0 }, { repeats: Number.NaN }])
    expect(() => peakProductSeconds({ ...product, ...wrong })).toThrow(InvalidInputError);
  expect(() => readSeconds(new Float32Array(100), 1)).toThrow(/multiple of 65536/);
});
