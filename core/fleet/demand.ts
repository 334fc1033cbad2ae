/** What runs need of the fleet, from what their last iterations took. */
import { meets } from '../machine-needs.ts';
import type { MachineFacts, MachineNeeds } from '../machine-needs.ts';
import type { Role } from '../roles.ts';
import type { Demand, TrainerDemand } from './types.ts';

/** A run that is to go on, as its records and its recipe show it. */
export interface ObservedRun {
  readonly run: string;
  /** The run's newest iteration, and the number of those that are left. */
  readonly position: number;
  readonly left: number;
  /** Newest iteration, in wall seconds; absent before the first one has ended. */
  readonly last?: { readonly rolloutSeconds: number; readonly stepSeconds: number };
  /** It samples responses: it needs rollout workers, too. */
  readonly samples: boolean;
  /** One for each part that has a trainer of its own, and one more with a standby. */
  readonly trainers: number;
  /** `fleet` of its recipe. */
  readonly needs: Readonly<Partial<Record<Role, MachineNeeds | undefined>>>;
  readonly budgetUsd: number | null;
  readonly deadline: string | null;
  readonly priority: number;
  /** Cost since the run started, of all instances. */
  readonly spentUsd: number;
}

export interface FleetNow {
  readonly pool: string;
  /** Rollout workers, bought or not, that were there when the newest iteration ended. */
  readonly workers: number;
  /** Workers that exist now without being bought. */
  readonly ownWorkers: number;
  readonly waitingUsdPerHour: number;
  /** ms. */
  readonly now: number;
}

/** The guess before a measurement: one worker pays and a second one does not. */
const unmeasured = { rolloutSeconds: 1, otherSeconds: 1_000, isGuess: true };

/** undefined for a run that needs nothing more. */
export function demandOf(
  seen: ObservedRun,
  { pool, workers, ownWorkers, waitingUsdPerHour, now }: FleetNow,
): Demand | undefined {
  if (seen.left <= 0 || !seen.samples) return undefined;
  const { last, budgetUsd, deadline } = seen;
  const measured = last && {
    rolloutSeconds: last.rolloutSeconds * Math.max(1, workers),
    otherSeconds: Math.max(0, last.stepSeconds - last.rolloutSeconds),
  };
  return {
    run: seen.run,
    pool,
    ...(measured ?? unmeasured),
    own: ownWorkers,
    waitingUsdPerHour,
    priority: seen.priority,
    ...(budgetUsd !== null && { budgetUsd: Math.max(0, budgetUsd - seen.spentUsd) }),
    ...(deadline !== null && {
      deadline: { secondsLeft: Math.max(0, (Date.parse(deadline) - now) / 1_000), iterationsLeft: seen.left },
    }),
  };
}

/** A pool of which instances can be bought. */
export interface OfferedPool {
  readonly name: string;
  readonly roles: readonly Role[];
}

/** The first pool that has the role, and that the run does not exclude. */
export const poolFor = (
  role: Role,
  { needs }: Pick<ObservedRun, 'needs'>,
  pools: readonly OfferedPool[],
): OfferedPool | undefined =>
  pools.find(({ name, roles }) => roles.includes(role) && needs[role]?.pools?.includes(name) !== false);

/**
 * The trainers that must be bought. A run uses those of `own` first that are what it needs: machines of trainers that
 * are there without being bought, each for one run.
 */
export function trainerDemands(
  runs: readonly ObservedRun[],
  pools: readonly OfferedPool[],
  own: readonly MachineFacts[],
): TrainerDemand[] {
  const free = [...own];
  return runs.flatMap((seen): TrainerDemand | [] => {
    if (seen.left <= 0) return [];
    let missing = seen.trainers;
    for (; missing > 0; missing--) {
      const found = free.findIndex((machine) => meets(seen.needs.trainer ?? {}, machine));
      if (found < 0) break;
      free.splice(found, 1);
    }
    const pool = poolFor('trainer', seen, pools);
    if (pool === undefined || missing === 0) return [];
    const { budgetUsd, spentUsd, last } = seen;
    return {
      ...{ pool: pool.name, run: seen.run, count: missing },
      ...(budgetUsd !== null && { budgetUsd: Math.max(0, budgetUsd - spentUsd) }),
      ...(last && { iterationSeconds: last.stepSeconds }),
    };
  });
}
