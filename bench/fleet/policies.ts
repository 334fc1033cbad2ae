/** Policies that decide how many machines there are: the planner, and two that it is compared with. */
import { plan } from '../../core/fleet/plan.ts';
import { isResting } from '../../core/fleet/spread.ts';
import type { PlanInput, Place } from '../../core/fleet/types.ts';

/** Changes of the number of machines at places. */
export type Change = { readonly place: Place; readonly by: number };
export interface Policy {
  readonly name: string;
  readonly decide: (input: PlanInput) => readonly Change[];
}

export const planner: Policy = {
  name: 'planner',
  decide: (input) => plan(input).decisions.map(({ place, from, to }) => ({ place, by: to - from })),
};

/** A policy with a fixed number of machines on demand, which are never lost. */
export const fixed = (count: number): Policy => ({
  name: `${count} on demand`,
  decide: ({ pools: [pool], instances }) => {
    const place = pool?.places.find(({ market }) => market === 'onDemand');
    return place === undefined || instances.length === count ? [] : [{ place, by: count - instances.length }];
  },
});

/** A policy with as many spot machines as the pool may have, each at the cheapest place that has capacity. */
export const greedy: Policy = {
  name: 'greedy spot',
  decide: ({ pools: [pool], instances, refusals }) => {
    const missing = (pool?.max ?? 0) - instances.length;
    const places = (pool?.places ?? [])
      .filter((place) => place.market === 'spot' && !isResting(place, refusals))
      .sort((a, b) => a.usdPerHour - b.usdPerHour);
    const [place] = places;
    return missing <= 0 || place === undefined ? [] : [{ place, by: missing }];
  },
};
