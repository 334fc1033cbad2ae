/** The first seeds of kill-anything.test.ts. */
import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { firstPlans } from './coverage.ts';
import { playSeeds } from './play.ts';

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  const done = playSeeds(firstPlans(), () => new Bed());

  it('and every fault of these seeds has happened', () => {
    expect(firstPlans()).toHaveLength(2);
    expect(done.length).toBe(firstPlans().reduce((sum, { strikes }) => sum + strikes.length, 0));
  });
});
