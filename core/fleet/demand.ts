/** What a run needs of the fleet, from what its last iterations took. */
import type { Demand } from './types.ts';

/** A run that is to go on, as its records and its recipe show it. */
export interface ObservedRun {
  readonly run: string;
  /** The run's newest iteration, and the number of those that are left. */
  readonly position: number;
  readonly left: number;
  /** Newest iteration, in wall seconds; absent before the first one has ended. */
  readonly last?: { readonly rolloutSeconds: number; readonly stepSeconds: number };
  /** `fleet` of its recipe. */
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
  if (seen.left <= 0) return undefined;
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
