// @module-tag long
/** Other runs than that of kill-anything.test.ts: most have a state of their own that must survive. */
import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { otherSubjects, plansOfOthers } from './coverage.ts';
import { playSeeds } from './play.ts';

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  const plans = plansOfOthers();
  const done = playSeeds(plans, () => new Bed());

  it('and every fault of these seeds has happened', () => {
    expect(done.length).toBe(plans.reduce((sum, { strikes }) => sum + strikes.length, 0));
    expect(new Set(plans.map(({ subject }) => subject)).size).toBe(otherSubjects.length);
  });
});
