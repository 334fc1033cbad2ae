// @module-tag long
/** The control process dies while it buys and gives back: nothing is bought twice, and nothing is left. */
import { afterAll, it } from 'vitest';
import { FleetBed } from './bed.ts';
import { fleetPlan, fleetTitle, runFleetSeed } from './seed.ts';

/** Plans that kill between decision and call, call and answer, answer and join, around the join, and at the end. */
const seeds = [2, 3, 4, 5, 6, 10].map(fleetPlan);
const on = new FleetBed();
afterAll(() => on.remove(), 120_000);

it.each(seeds.map((plan) => [fleetTitle(plan), plan] as const))('%s', (_, plan) => runFleetSeed(on, plan), 300_000);
