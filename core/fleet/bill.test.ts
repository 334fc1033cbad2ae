import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { billOfFleet } from './bill.ts';
import type { InstanceHistory, Used } from './bill.ts';
import { billOf, charges, sumsBy } from './cost.ts';

const history = (more: Partial<InstanceHistory> = {}): InstanceHistory => ({
  id: 'i-1',
  pool: 'samplers',
  zone: 'a',
  usdPerHour: 3.6,
  launchedAt: 100,
  instance: 'samplers-1',
  readyAt: 160,
  endedAt: 1_000,
  ...more,
});
const used = (from: number, to: number, more: Partial<Used> = {}): Used => ({
  instance: 'samplers-1',
  from,
  to,
  use: 'useful',
  run: 'toy',
  iteration: 1,
  ...more,
});
const made = (histories: readonly InstanceHistory[], all: readonly Used[], now = 2_000) => {
  const { instances, spans } = billOfFleet(histories, all, now);
  return { instances, charges: charges(instances, spans) };
};
/** Micro-dollars by use; the instance costs 1000 a second. */
const byUse = (...of: Parameters<typeof made>) => Object.fromEntries(sumsBy(made(...of).charges, 'use'));

describe('the bill of a fleet', () => {
  it('is exactly the bill of its instances, whatever jobs are noted', () => {
    const histories = fc.array(
      fc.record({
        launchedAt: fc.nat(1_000),
        boots: fc.option(fc.nat(300), { nil: undefined }),
        lives: fc.option(fc.nat(5_000), { nil: undefined }),
        usdPerHour: fc.double({ min: 0, max: 50, noNaN: true }),
      }),
      { maxLength: 5 },
    );
    const jobs = fc.array(
      fc.record({
        machine: fc.nat(6),
        from: fc.double({ min: 0, max: 7_000, noNaN: true }),
        seconds: fc.double({ min: 0, max: 500, noNaN: true }),
        run: fc.constantFrom('r1', 'r2'),
        use: fc.constantFrom('useful' as const, 'lost' as const),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(histories, jobs, fc.integer({ min: 1_000, max: 6_000 }), (all, done, now) => {
        const known = all.map(({ launchedAt, boots, lives, usdPerHour }, i): InstanceHistory => {
          const ready = boots === undefined ? {} : { readyAt: launchedAt + boots };
          const ended = lives === undefined ? {} : { endedAt: launchedAt + lives };
          return { id: `i${i}`, pool: 'p', zone: 'a', usdPerHour, instance: `m${i}`, launchedAt, ...ready, ...ended };
        });
        const spans = done.map(({ machine, from, seconds, run, use }) =>
          used(from, from + seconds, { instance: `m${machine}`, run, use }),
        );
        const { instances, charges: parts } = made(known, spans, now);
        const bill = instances.reduce((sum, one) => sum + billOf(one), 0);
        expect(parts.reduce((sum, { microUsd }) => sum + microUsd, 0)).toBe(bill);
        for (const column of ['run', 'pool', 'zone', 'use'] as const)
          expect([...sumsBy(parts, column).values()].reduce((sum, one) => sum + one, 0)).toBe(bill);
      }),
    );
  });

  it('divides a machine’s time into booting, work, waiting between the jobs of a run, losses and idle time', () => {
    const jobs = [used(200, 300), used(350, 400, { iteration: 2 }), used(390, 450, { use: 'lost', iteration: 2 })];
    expect(byUse([history()], jobs)).toEqual({
      booting: 60_000,
      useful: 150_000,
      waiting: 50_000,
      lost: 50_000, // the part beside another job is counted with that one
      idle: 590_000,
    });
  });

  it('does not take the time between jobs of two runs for waiting', () => {
    expect(byUse([history()], [used(200, 300), used(350, 400, { run: 'other' })])).toMatchObject({ idle: 690_000 });
  });

  it('counts a machine that has never been ready as booting, and one that still runs until now', () => {
    const { readyAt: _, endedAt: __, ...never } = history();
    expect(byUse([never], [used(200, 300)], 500)).toEqual({ booting: 400_000, idle: 0 });
  });
});
