import { afterAll, describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { pairName, pairs } from './pairs.ts';
import { planTitle, plansOf, seedsPerCycle } from './plan.ts';
import { runSeed } from './seed.ts';

/** The seeds that go once through the list; `npm run test:recovery` plays any other. */
const plans = plansOf(1, seedsPerCycle());

/** Of a loaded machine: a run that is stuck is found out long before. */
const patienceMs = 600_000;

let bed = new Bed();
afterAll(() => bed.remove());

describe('whatever is killed, a deterministic run goes on by itself to the same states and metrics', () => {
  it.each(plans.map((plan) => [planTitle(plan), plan] as const))('%s', async (_, plan) => {
    try {
      const { blows } = await runSeed(bed, plan);
      expect(blows).toHaveLength(plan.strikes.length);
    } catch (error) {
      // The next seed gets a stack of its own.
      await bed.remove();
      bed = new Bed();
      throw error;
    }
  }, patienceMs);

  it('and these seeds did every fault in every stage of the list', () => {
    const planned = new Set(plans.flatMap(({ strikes }) => strikes.map(({ pair }) => pairName(pair))));
    expect([...planned].sort()).toEqual([...new Set(pairs.map(pairName))].sort());
    expect(pairs.length).toBeGreaterThanOrEqual(40);
  });
});
