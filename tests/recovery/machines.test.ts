// @module-tag long
/** Whole machines that are lost or cut off: the run ends by itself in the bits of an undisturbed one. */
import { expect, it } from 'vitest';
import { MachineBed } from './machine-bed.ts';
import { machineFaults, machinePlan } from './machine-plan.ts';
import { playMachineSeeds } from './machine-tests.ts';

const plans = Array.from({ length: 8 }, (_, i) => machinePlan(i + 1));
playMachineSeeds(plans, () => new MachineBed());

it('every fault of a machine is among these seeds', () => {
  expect(new Set(plans.map(({ fault }) => fault))).toEqual(new Set(machineFaults));
});
