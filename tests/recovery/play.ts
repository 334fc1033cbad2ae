/** Seeds as tests, one after the other on one stack. After a failed seed, the next one gets a new stack. */
import { afterAll, expect, it } from 'vitest';
import type { Bed } from './bed.ts';
import { planTitle } from './plan.ts';
import type { Plan } from './plan.ts';
import { runSeed } from './seed.ts';
import type { Blow } from './strike.ts';

/** Returns the results of the seeds after all of them have ended. */
export function playSeeds(plans: readonly Plan[], newBed: () => Bed): readonly Blow[] {
  const done: Blow[] = [];
  let bed: Bed | undefined;
  const removeBed = async (): Promise<void> => {
    const last = bed;
    bed = undefined;
    await last?.remove();
  };
  afterAll(removeBed); // it also verifies the ledger of every run

  it.each(plans.map((plan) => [planTitle(plan), plan] as const))('%s', async (_, plan) => {
    bed ??= newBed();
    try {
      const { blows } = await runSeed(bed, plan);
      expect(blows).toHaveLength(plan.strikes.length);
      done.push(...blows);
    } catch (error) {
      await removeBed();
      throw error;
    }
  });
  return done;
}
