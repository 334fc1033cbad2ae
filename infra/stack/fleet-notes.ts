/** The store that holds the fleet of this stack, and the last plan, in files of the stack. */
import { join } from 'node:path';
import { z } from 'zod';
import type { NotedPlan } from '../../core/fleet/types.ts';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import { stackFolder } from './state.ts';

const place = z.object({
  type: z.string(),
  zone: z.string(),
  market: z.enum(['spot', 'onDemand']),
  usdPerHour: z.number(),
});
const notedPlan = z.object({
  at: z.string(),
  decisions: z.array(z.object({ pool: z.string(), place, from: z.int(), to: z.int(), because: z.string() })),
  pauses: z.array(z.object({ run: z.string(), because: z.string() })),
  notes: z.array(z.string()),
  prices: z.array(place.omit({ market: true })),
  stopped: z.array(z.object({ pool: z.string(), because: z.string() })),
  /** The reason of each pool's count. */
  reasons: z.array(z.object({ pool: z.string(), count: z.int(), because: z.string() })),
});

const storeFile = (home: string): string => join(home, 'fleet-store.json');
const planFile = (home: string): string => join(stackFolder(home), 'fleet-plan.json');

/** URL of the store; undefined before the first `petrel fleet apply`. */
export const fleetStore = (home: string): string | undefined =>
  z.object({ store: z.string() }).safeParse(readHomeJson(storeFile(home))).data?.store;

export const noteFleetStore = (home: string, store: string): void => writeHomeJson(storeFile(home), { store });

export const lastPlan = (home: string): NotedPlan | undefined => notedPlan.safeParse(readHomeJson(planFile(home))).data;

export const notePlan = (home: string, plan: NotedPlan): void => writeHomeJson(planFile(home), plan);
