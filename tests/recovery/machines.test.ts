/** Whole machines that are lost or cut off: the run ends by itself in the bits of an undisturbed one. */
import { afterAll, expect, it } from 'vitest';
import { MachineBed } from './machine-bed.ts';
import { machineFaults, machinePlan, machineTitle, runMachineSeed } from './machine-seed.ts';

const seeds = Array.from({ length: 8 }, (_, i) => machinePlan(i + 1));
let on: MachineBed | undefined;
const remove = async (): Promise<void> => {
  const last = on;
  on = undefined;
  await last?.remove();
};
afterAll(remove, 120_000);

it.each(seeds.map((plan) => [machineTitle(plan), plan] as const))(
  '%s',
  async (_, plan) => {
    on ??= new MachineBed();
    try {
      const { wentOnAfterS } = await runMachineSeed(on, plan);
      console.log(`the run went on after ${wentOnAfterS.toFixed(1)} s`);
    } catch (error) {
      await remove(); // the next seed gets a new stack
      throw error;
    }
  },
  300_000,
);

it('every fault of a machine is among these seeds', () => {
  expect(new Set(seeds.map(({ fault }) => fault))).toEqual(new Set(machineFaults));
});
