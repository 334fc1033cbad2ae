import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { demandOf } from './demand.ts';
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
