/** Seeds of faults of machines as tests, one after the other on one stack. After a failed seed, the next one gets a new stack. */
import { afterAll, it } from 'vitest';
import type { MachineBed } from './machine-bed.ts';
import { machineTitle } from './machine-plan.ts';
import type { MachinePlan } from './machine-plan.ts';
import { runMachineSeed } from './machine-seed.ts';

/** The tests run beside each other on two processors. */
const slack = 3;

export function playMachineSeeds(plans: readonly MachinePlan[], newBed: () => MachineBed): void {
  let on: MachineBed | undefined;
  const remove = async (): Promise<void> => {
    const last = on;
    on = undefined;
    await last?.remove();
  };
  afterAll(remove, 120_000);

  it.each(plans.map((plan) => [machineTitle(plan), plan] as const))(
    '%s',
    async (_, plan) => {
      on ??= newBed();
      try {
        const { elsewhereAfterS, decidedAfterS } = await runMachineSeed(on, plan, slack);
        console.log(
          `the job began elsewhere after ${elsewhereAfterS ?? '–'} s, the run decided after ${decidedAfterS} s`,
        );
      } catch (error) {
        await remove();
        throw error;
      }
    },
    300_000,
  );
}
