/** Other runs than that of kill-anything.test.ts: most have a state of their own that must survive. */
import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { plansOf } from './plan.ts';
import { playSeeds } from './play.ts';
import { subjectNames } from './subjects.ts';
import type { Subject } from './subjects.ts';

const disturbed = subjectNames.filter((name) => name !== 'grpo');

/** Runs without a state of their own: what they compute must survive, too. */
const stateless: ReadonlySet<Subject> = new Set([
  'rollout correction',
  'bypassed correction',
  'overlong',
  'gdpo',
  'online DPO',
]);
const seedsOf = (subject: Subject): number => (stateless.has(subject) ? 1 : 2);
/** Of each run other seeds, so that together they have many faults. */
const firstSeedOf = (i: number): number =>
  1 + disturbed.slice(0, i).reduce((sum, subject) => sum + seedsOf(subject), 0);

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  const plans = disturbed.flatMap((subject, i) => plansOf(firstSeedOf(i), seedsOf(subject), undefined, subject));
  const done = playSeeds(plans, () => new Bed());

  it('and every fault of these seeds has happened', () => {
    expect(done.length).toBe(plans.reduce((sum, { strikes }) => sum + strikes.length, 0));
    expect(new Set(plans.map(({ subject }) => subject)).size).toBe(disturbed.length);
  });
});
