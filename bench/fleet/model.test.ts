import { describe, expect, it } from 'vitest';
import { iterationSeconds } from '../../core/fleet/worth.ts';
import { play } from './model.ts';
import type { Work } from './model.ts';
import { fixed, greedy, planner } from './policies.ts';
import { traces } from './traces.ts';

const work: Work = {
  iterations: 30,
  rolloutSeconds: 300,
  updateSeconds: 20,
  waitingUsdPerHour: 4,
  pool: {
    name: 'rollout',
    min: 0,
    max: 40,
    onDemandFloor: 0,
    places: [
      { zone: 'a', type: 't', market: 'spot', usdPerHour: 0.3 },
      { zone: 'b', type: 't', market: 'spot', usdPerHour: 0.3 },
      { zone: 'a', type: 't', market: 'onDemand', usdPerHour: 0.8 },
    ],
    bootSeconds: 60,
    idleSeconds: 300,
  },
};
const cases = traces.flatMap((trace) =>
  [planner, fixed(4), greedy].map((policy) => ({ trace, policy, name: `${policy.name}, ${trace.name}` })),
);

describe.each([1, 2, 3])('the model of a fleet (seed %i)', (seed) => {
  it.each(cases)('accounts for every paid second: $name', ({ trace, policy }) => {
    const { paidSeconds, usedSeconds, useful } = play(work, trace, policy, seed);
    expect(Object.values(usedSeconds).reduce((a, b) => a + b, 0)).toBeCloseTo(paidSeconds, 3);
    expect(useful).toBeGreaterThan(0);
    expect(useful).toBeLessThanOrEqual(1);
  });

  it.each(cases)('gives the same answer to the same seed: $name', ({ trace, policy }) => {
    expect(play(work, trace, policy, seed)).toEqual(play(work, trace, policy, seed));
  });

  it('takes the time that the formula says, with machines that are never lost', () => {
    const { hours, losses } = play(work, { ...traces[0], lossesPerHour: 0 } as (typeof traces)[0], fixed(4), seed);
    const demand = { run: 'r', pool: 'p', rolloutSeconds: 300, otherSeconds: 20, waitingUsdPerHour: 4, priority: 1 };
    const booting = 15 + 60; // the first plan is made after 15 s
    expect(hours * 3600).toBeCloseTo(booting + 30 * iterationSeconds(demand, 4), 3);
    expect(losses).toBe(0);
  });
});

it.each(traces)(
  'with waiting counted, the planner costs less than a fixed size and than greedy spot: $name',
  (trace) => {
    const total = (policy: typeof planner) =>
      [1, 2, 3, 4, 5, 6].reduce((sum, seed) => sum + play(work, trace, policy, seed).totalUsd, 0);
    expect(total(planner)).toBeLessThan(total(fixed(4)));
    expect(total(planner)).toBeLessThan(total(greedy));
  },
);
