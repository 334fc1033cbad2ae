/** What the planner of the fleet knows and what it decides. Times in seconds, prices in dollars per hour. */

export type Market = 'spot' | 'onDemand';

/** A place where an instance can be bought. */
export interface Place {
  readonly zone: string;
  readonly type: string;
  readonly market: Market;
  readonly usdPerHour: number;
}

/** Equal workers that are bought and given back: the rollout workers of some runs. */
export interface Pool {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The first `onDemandFloor` instances of the pool are on demand. */
  readonly onDemandFloor: number;
  readonly places: readonly Place[];
  /** Seconds from the launch to the first job. */
  readonly bootSeconds: number;
  /** A pool without demand for so long goes down to `min`. */
  readonly idleSeconds: number;
}

export interface Instance {
  readonly id: string;
  readonly pool: string;
  readonly place: Place;
  readonly state: 'booting' | 'ready' | 'draining';
}

/** What was measured of a run that needs workers of a pool. */
export interface Demand {
  readonly run: string;
  readonly pool: string;
  /** Rollouts of an iteration, in seconds of one worker. 0: not known yet, or no iteration is due. */
  readonly rolloutSeconds: number;
  /** The times are no measurement: no iteration has ended yet. */
  readonly isGuess?: boolean;
  /** Workers that the run has without buying any; default 0. */
  readonly own?: number;
  /** The rest of an iteration, during which these workers wait: the update, and what follows it. */
  readonly otherSeconds: number;
  /** Price of what waits for the workers: the trainer, and what the user says an hour of waiting is worth. */
  readonly waitingUsdPerHour: number;
  /** The run's part of the workers, against other runs of the pool. */
  readonly priority: number;
  /** What is left of `fleet.budget_usd`. */
  readonly budgetUsd?: number;
  /** `fleet.deadline`, from now on, and the iterations that are left until then. */
  readonly deadline?: { readonly secondsLeft: number; readonly iterationsLeft: number };
}

/** Trainers that a run needs of a pool, beside those that are not bought. */
export interface TrainerDemand {
  readonly run: string;
  readonly pool: string;
  readonly count: number;
  /** What is left of `fleet.budget_usd`. */
  readonly budgetUsd?: number;
  /** Absent before an iteration has ended. */
  readonly iterationSeconds?: number;
}

/** A launch that failed lately. */
export interface Refusal {
  readonly place: Place;
  /** `capacity`: nothing is free there. `limit`: the account may not have more. */
  readonly kind: 'capacity' | 'limit';
  readonly secondsAgo: number;
}

export interface PlanInput {
  readonly pools: readonly Pool[];
  readonly instances: readonly Instance[];
  readonly demands: readonly Demand[];
  readonly trainers?: readonly TrainerDemand[];
  readonly refusals: readonly Refusal[];
  /** Limit for all pools together; absent: no limit. */
  readonly maxUsdPerHour?: number;
  /** Time since when no job waited or was held, by pool. Absent: there is demand. */
  readonly idleFor?: Readonly<Record<string, number>>;
}

/** The plan wants `to` instances at this place. Only changes are decisions. */
export interface Decision {
  readonly pool: string;
  readonly place: Place;
  readonly from: number;
  readonly to: number;
  /** A sentence for people. */
  readonly because: string;
}

/** The run is to pause at a committed iteration. */
export interface Pause {
  readonly run: string;
  readonly because: string;
}

export interface Plan {
  readonly decisions: readonly Decision[];
  readonly pauses: readonly Pause[];
  /** How many instances each pool is to have, and why. */
  readonly reasons: readonly { readonly pool: string; readonly count: number; readonly because: string }[];
  /** Why a pool has less than its demand is worth, or a deadline cannot be kept. */
  readonly notes: readonly string[];
}

/** The last plan, as `petrel fleet explain` shows it. */
export interface NotedPlan extends Plan {
  /** ISO time. */
  readonly at: string;
  /** Prices of spot instances. */
  readonly prices: readonly Pick<Place, 'type' | 'zone' | 'usdPerHour'>[];
  /** Pools that stand still until a person has changed their settings. */
  readonly stopped: readonly { readonly pool: string; readonly because: string }[];
}

export const placeName = ({ type, market, zone }: Place): string =>
  `${type} ${market === 'spot' ? 'spot' : 'on demand'} in ${zone}`;
