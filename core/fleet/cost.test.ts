import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { billOf, charges, divide, sumsBy, uses } from './cost.ts';
import type { BilledInstance, Span } from './cost.ts';

const instance = (more: Partial<BilledInstance> = {}): BilledInstance => ({
  id: 'i1',
  pool: 'sample',
  zone: 'a',
  usdPerHour: 3.6,
  launchedAt: 0,
  endedAt: 1000,
  ...more,
});

const fleets = fc.array(
  fc.record({
    usdPerHour: fc.double({ min: 0, max: 100, noNaN: true }),
    launchedAt: fc.nat(10_000),
    seconds: fc.nat(100_000),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }),
    uses: fc.array(fc.constantFrom(...uses), { minLength: 9, maxLength: 9 }),
    run: fc.option(fc.constantFrom('r1', 'r2'), { nil: undefined }),
  }),
  { maxLength: 6 },
);

describe('the charges of a fleet', () => {
  it('are exactly the bills of its instances, by any column', () => {
    fc.assert(
      fc.property(fleets, (all) => {
        const instances = all.map(({ usdPerHour, launchedAt, seconds }, i) =>
          instance({ id: `i${i}`, usdPerHour, launchedAt, endedAt: launchedAt + seconds, zone: 'abc'[i % 3] ?? 'a' }),
        );
        const spans = all.flatMap(({ launchedAt, seconds, cuts, uses: of, run }, i) => {
          const at = [0, ...[...cuts].sort((a, b) => a - b), 1].map((cut) => launchedAt + cut * seconds);
          return at.slice(1).flatMap((to, j): Span[] => {
            const use = of[j] ?? 'idle';
            return use === 'idle'
              ? []
              : [{ instance: `i${i}`, from: at[j] ?? 0, to, use, ...(run !== undefined && { run }) }];
          });
        });
        const bill = instances.reduce((sum, one) => sum + billOf(one), 0);
        const made = charges(instances, spans);
        for (const column of ['run', 'pool', 'zone', 'use'] as const)
          expect([...sumsBy(made, column).values()].reduce((a, b) => a + b, 0)).toBe(bill);
        expect(made.every(({ microUsd }) => Number.isInteger(microUsd) && microUsd >= 0)).toBe(true);
      }),
    );
  });

  it('name the run, the iteration and the use, and the stack for what no run used', () => {
    const made = charges(
      [instance()],
      [
        { instance: 'i1', from: 0, to: 100, use: 'booting' },
        { instance: 'i1', from: 100, to: 600, use: 'useful', run: 'toy', iteration: 3 },
      ],
    );
    expect(made.map(({ microUsd, use, run, iteration }) => [microUsd, use, run, iteration])).toEqual([
      [100_000, 'booting', undefined, undefined],
      [500_000, 'useful', 'toy', 3],
      [400_000, 'idle', undefined, undefined],
    ]);
    expect(Object.fromEntries(sumsBy(made, 'run'))).toEqual({ stack: 500_000, toy: 500_000 });
  });

  it('of less than a minute are those of a minute', () => {
    expect(billOf(instance({ endedAt: 10 }))).toBe(60_000);
  });

  it.each([
    ['over another span', 50, 200],
    ['outside of the time of its instance', 900, 1001],
    ['that ends before it begins', 300, 200],
  ])('are refused for a span %s', (_, from, to) => {
    const spans: Span[] = [
      { instance: 'i1', from: 0, to: 100, use: 'useful', run: 'toy' },
      { instance: 'i1', from, to, use: 'useful', run: 'toy' },
    ];
    expect(() => charges([instance()], spans)).toThrow(RangeError);
  });
});

it('a whole number is divided into whole parts, each within one of its share', () => {
  fc.assert(
    fc.property(
      fc.nat(1e9),
      fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 20 }),
      (whole, weights) => {
        const parts = divide(whole, weights);
        const total = weights.reduce((a, b) => a + b, 0);
        expect(parts.reduce((a, b) => a + b, 0)).toBe(whole);
        if (total > 0)
          parts.forEach((part, i) =>
            expect(Math.abs(part - (whole * (weights[i] ?? 0)) / total)).toBeLessThanOrEqual(1 + 1e-6),
          );
      },
    ),
  );
});
