import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextKlCoef, type KlControl } from './kl-controllers.ts';

const adaptive: KlControl = { type: 'adaptive', klCoef: 0.2, targetKl: 0.1, horizon: 1000 };

test('the fixed controller keeps its coefficient, whatever the KL', () => {
  expect(nextKlCoef({ type: 'fixed', klCoef: 0.04 }, 0.04, NaN, 256)).toBe(0.04);
});

test('the adaptive controller moves towards the target, by at most a fifth in a horizon', () => {
  expect(nextKlCoef(adaptive, 0.2, 0.1, 1000)).toBe(0.2);
  expect(nextKlCoef(adaptive, 0.2, 9, 1000)).toBeCloseTo(0.24, 12);
  expect(nextKlCoef(adaptive, 0.2, -9, 1000)).toBeCloseTo(0.16, 12);
  expect(nextKlCoef(adaptive, 0.2, 0.11, 500)).toBeCloseTo(0.2 * 1.05, 12);
});

test('the adaptive controller rises above the target and falls below it', () => {
  const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
  fc.assert(
    fc.property(number(0.01, 1), number(-1, 1), fc.integer({ min: 1, max: 4000 }), (coefficient, kl, samples) => {
      const next = nextKlCoef(adaptive, coefficient, kl, samples);
      expect(Math.sign(next - coefficient) * Math.sign(kl - 0.1)).not.toBe(-1);
      expect(next).toBeGreaterThan(0);
    }),
  );
});

test('an empty batch changes nothing; defaults are those of verl', () => {
  expect(nextKlCoef(adaptive, 0.2, 0, 0)).toBe(0.2);
  expect(nextKlCoef({ type: 'adaptive', klCoef: 1 }, 1, 5, 1000)).toBeCloseTo(1.02, 12);
});

test('a horizon that is not positive and an unknown type are refused', () => {
  expect(() => nextKlCoef({ ...adaptive, horizon: 0 }, 0.2, 0, 1)).toThrow(/horizon must be greater than 0, got 0/);
  expect(() => nextKlCoef({ ...adaptive, type: 'linear' as 'fixed' }, 0.2, 0, 1)).toThrow(
    expect.objectContaining({ hint: 'one of fixed, adaptive' }),
  );
});
