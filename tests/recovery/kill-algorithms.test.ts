/** Other runs than that of kill-anything.test.ts: most have a state of their own that must survive. */
import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { plansOf } from './plan.ts';
import { playSeeds } from './play.ts';
import { subjectNames } from './subjects.ts';

const disturbed = subjectNames.filter((name) => name !== 'grpo');

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  // Of each run another seed, so that together they have many faults.
  const plans = disturbed.flatMap((subject, i) => plansOf(1 + i, 1, undefined, subject));
  const done = playSeeds(plans, () => new Bed());

  it('and every fault of these seeds has happened', () => {
    expect(done.length).toBe(plans.reduce((sum, { strikes }) => sum + strikes.length, 0));
    expect(new Set(plans.map(({ subject }) => subject)).size).toBe(disturbed.length);
  });
});
