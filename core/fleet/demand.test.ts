import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { demandOf, trainerDemands } from './demand.ts';
import type { FleetNow, ObservedRun } from './demand.ts';
import { iterationSeconds, worthOfNext } from './worth.ts';

const run = (more: Partial<ObservedRun> = {}): ObservedRun => ({
  run: 'toy',
  position: 3,
  left: 10,
  budgetUsd: null,
  deadline: null,
  priority: 1,
  spentUsd: 0,
  samples: true,
  trainers: 1,
  needs: {},
  ...more,
});
const now = (more: Partial<FleetNow> = {}): FleetNow => ({
  pool: 'samplers',
  workers: 4,
  ownWorkers: 1,
  waitingUsdPerHour: 1,
  now: Date.parse('2027-01-31T12:00:00Z'),
  ...more,
});

describe('the demand of a run', () => {
  it('is none when no iteration is left', () => {
    expect(demandOf(run({ left: 0 }), now())).toBeUndefined();
  });

  it('gives back the measured seconds with as many workers as were there', () => {
    const seconds = fc.double({ min: 0.1, max: 1e4, noNaN: true });
    fc.assert(
      fc.property(seconds, seconds, fc.nat(20), fc.nat(20), (rolloutSeconds, rest, own, bought) => {
        fc.pre(own + bought > 0);
        const last = { rolloutSeconds, stepSeconds: rolloutSeconds + rest };
        const demand = demandOf(run({ last }), now({ workers: own + bought, ownWorkers: own }));
        expect(demand && iterationSeconds(demand, bought)).toBeCloseTo(last.stepSeconds, 6);
      }),
    );
  });

  it('is one worker before anything is measured, and none where the run has one', () => {
    const first = demandOf(run(), now({ workers: 0, ownWorkers: 0 }));
    expect(first && worthOfNext(first, 0, 0.1)).toBe(Number.POSITIVE_INFINITY);
    expect(first && worthOfNext(first, 1, 0.1)).toBeLessThan(1);
    const own = demandOf(run(), now({ workers: 1, ownWorkers: 1 }));
    expect(own && worthOfNext(own, 0, 0.1)).toBeLessThan(1);
  });

  it('contains what is left of the budget and of the time', () => {
    const seen = run({ budgetUsd: 5, spentUsd: 6, deadline: '2027-01-31T13:00:00Z' });
    expect(demandOf(seen, now())).toMatchObject({
      budgetUsd: 0,
      deadline: { secondsLeft: 3_600, iterationsLeft: 10 },
    });
  });
});

describe('the trainers that must be bought', () => {
  const pools = [
    { name: 'samplers', roles: ['rollout' as const] },
    { name: 'gpus', roles: ['trainer' as const, 'rollout' as const] },
    { name: 'large', roles: ['trainer' as const] },
  ];
  const wanted = (own: number, ...runs: Partial<ObservedRun>[]) =>
    trainerDemands(
      runs.map((more, i) => run({ run: `r${i}`, ...more })),
      pools,
      Array.from({ length: own }, () => ({ pool: 'local', gpus: [] })),
    );

  it('are one for each run that none of the others trains, from the first pool that has the role', () => {
    expect(wanted(0, {}, {})).toEqual([
      { pool: 'gpus', count: 1, run: 'r0' },
      { pool: 'gpus', count: 1, run: 'r1' },
    ]);
    expect(wanted(1, {}, {})).toEqual([{ pool: 'gpus', count: 1, run: 'r1' }]);
    expect(wanted(2, {}, {})).toEqual([]);
  });

  it('are two with a standby, and none for a run that has ended', () => {
    expect(wanted(1, { trainers: 2 }, { left: 0 })).toEqual([{ pool: 'gpus', count: 1, run: 'r0' }]);
  });

  it('are of the pool that a run asks for, whatever others are there', () => {
    const inLarge = { needs: { trainer: { pools: ['large'] } } };
    expect(wanted(3, inLarge, {})).toEqual([{ pool: 'large', count: 1, run: 'r0' }]);
    expect(wanted(3, { needs: { trainer: { pools: ['elsewhere'] } } })).toEqual([]);
    const eight = { needs: { trainer: { gpu: { count: 8 } } } };
    expect(wanted(1, eight)).toEqual([{ pool: 'gpus', count: 1, run: 'r0' }]);
    const own = { pool: 'lab', gpus: Array.from({ length: 8 }, () => ({ name: 'H100', gib: 80 })) };
    expect(trainerDemands([run(eight)], pools, [own])).toEqual([]);
  });

  it('have what is left of the budget, and what an iteration takes', () => {
    const last = { rolloutSeconds: 1, stepSeconds: 60 };
    expect(wanted(0, { budgetUsd: 5, spentUsd: 2, last })).toEqual([
      { pool: 'gpus', count: 1, run: 'r0', budgetUsd: 3, iterationSeconds: 60 },
    ]);
  });

  it('are also those of runs that sample nothing', () => {
    expect(wanted(0, { samples: false })).toEqual([{ pool: 'gpus', count: 1, run: 'r0' }]);
    expect(demandOf(run({ samples: false }), now())).toBeUndefined();
  });
});
