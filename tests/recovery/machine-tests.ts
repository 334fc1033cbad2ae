/** Seeds of faults of machines as tests, one after the other, those that need another stack last. */
import { afterAll, it } from 'vitest';
import type { MachineBed } from './machine-bed.ts';
import { MachineBeds } from './machine-beds.ts';
import { machineTitle, needsCluster } from './machine-plan.ts';
import type { MachinePlan } from './machine-plan.ts';

export function playMachineSeeds(plans: readonly MachinePlan[], newBed: () => MachineBed): void {
  const beds = new MachineBeds(newBed);
  afterAll(() => beds.remove());

  const inOrder = [...plans].sort((a, b) => Number(needsCluster(a)) - Number(needsCluster(b)));
  it.each(inOrder.map((plan) => [machineTitle(plan), plan] as const))('%s', async (_, plan) => {
    const { elsewhereAfterS, decidedAfterS } = await beds.play(plan);
    console.log(`the job began elsewhere after ${elsewhereAfterS ?? '–'} s, the run decided after ${decidedAfterS} s`);
  });
}
