import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { at } from '../at.ts';
import { overlongPenalties } from './overlong.ts';

const seed = 20_260_104;

describe('the penalty for responses that are nearly too long', () => {
  test('falls from 0 before the buffer to −factor at the limit, and further beyond it', () => {
    const overlong = { limit: 12, buffer: 4, factor: 2 };
    expect([...overlongPenalties([0, 8, 9, 10, 12, 14], overlong)].map((value) => value + 0)).toEqual([
      0, 0, -0.5, -1, -2, -3,
    ]);
  });

  test(`never rises with the length, and is proportional to the factor (seed ${seed})`, () => {
    const lengths = fc.array(fc.nat(50), { minLength: 1 });
    const sizes = fc.tuple(fc.integer({ min: 1, max: 20 }), fc.nat(20));
    fc.assert(
      fc.property(lengths, sizes, fc.double({ min: 0, max: 5, noNaN: true }), (list, [buffer, more], factor) => {
        const sorted = list.toSorted((a, b) => a - b);
        const overlong = { limit: buffer + more, buffer };
        const [unit, scaled] = [1, factor].map((one) => overlongPenalties(sorted, { ...overlong, factor: one }));
        for (let s = 0; s < sorted.length; s++) {
          expect(at(unit ?? [], s)).toBeLessThanOrEqual(s === 0 ? 0 : at(unit ?? [], s - 1));
          expect(at(scaled ?? [], s)).toBeCloseTo(at(unit ?? [], s) * factor, 9);
        }
      }),
      { seed },
    );
  });

  test.each([
    [{ limit: 3, buffer: 4, factor: 1 }, /at most the longest response, 3, got 4/],
    [{ limit: 12, buffer: 0, factor: 1 }, /length of the buffer must be more than 0 tokens/],
    [{ limit: NaN, buffer: 1, factor: 1 }, /the longest response must be more than 0 tokens, got NaN/],
    [{ limit: 12, buffer: 4, factor: -1 }, /the penalty factor must be 0 or more, got -1/],
  ])('refuses %j', (overlong, message) => {
    expect(() => overlongPenalties([1], overlong)).toThrow(message);
  });
});
