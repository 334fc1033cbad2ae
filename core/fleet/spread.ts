/** Spreads the instances of a pool over zones, so that a loss of one zone is not a loss of all, at the lowest price. */
import type { Instance, Place, Pool, Refusal } from './types.ts';

/** A place that had no capacity is left alone for so long. */
export const restSeconds = 180;
/** A zone that costs more than the cheapest by this factor is used only when no other has capacity. */
const fairPrice = 1.25;

export const samePlace = (a: Place, b: Place): boolean =>
  a.zone === b.zone && a.type === b.type && a.market === b.market;

/** Instances by place, without those that leave. */
export type Counts = Map<Place, number>;

export function countsOf(pool: Pool, instances: readonly Instance[]): Counts {
  const own = instances.filter((one) => one.pool === pool.name && one.state !== 'draining');
  return new Map(pool.places.map((place) => [place, own.filter((one) => samePlace(one.place, place)).length]));
}

export const total = (counts: Counts, market?: Place['market']): number =>
  [...counts].reduce((sum, [place, count]) => sum + (market === undefined || place.market === market ? count : 0), 0);

export const isResting = (place: Place, refusals: readonly Refusal[]): boolean =>
  refusals.some((one) => one.kind === 'capacity' && one.secondsAgo < restSeconds && samePlace(one.place, place));

/** The place of the next instance; undefined when all of them rest. */
export function nextPlace(pool: Pool, counts: Counts, refusals: readonly Refusal[]): Place | undefined {
  const market = total(counts, 'onDemand') < pool.onDemandFloor ? 'onDemand' : 'spot';
  const free = pool.places.filter((place) => !isResting(place, refusals));
  const wanted = free.filter((place) => place.market === market);
  // The floor is a promise: without capacity on demand there is no instance. Without spot places the pool is on demand.
  const hasMarket = pool.places.some((place) => place.market === market);
  const places = wanted.length > 0 || hasMarket ? wanted : free;
  const cheapest = Math.min(...places.map(({ usdPerHour }) => usdPerHour));
  const fair = places.filter(({ usdPerHour }) => usdPerHour <= cheapest * fairPrice);
  return leastBy(fair, (place) => [inZone(counts, place.zone), place.usdPerHour, place.zone, place.type]);
}

/** The place that gives one back: of the fullest zone the dearest, and never one of the floor. */
export function dearestPlace(pool: Pool, counts: Counts): Place | undefined {
  const onDemand = total(counts, 'onDemand');
  const removable = [...counts.keys()].filter(
    (place) => (counts.get(place) ?? 0) > 0 && (place.market === 'spot' || onDemand > pool.onDemandFloor),
  );
  const candidates = removable.length > 0 ? removable : [...counts.keys()].filter((one) => (counts.get(one) ?? 0) > 0);
  return leastBy(candidates, (place) => [-inZone(counts, place.zone), -place.usdPerHour, place.zone, place.type]);
}

const inZone = (counts: Counts, zone: string): number =>
  [...counts].reduce((sum, [place, count]) => sum + (place.zone === zone ? count : 0), 0);

function leastBy<T>(items: readonly T[], key: (item: T) => readonly (number | string)[]): T | undefined {
  return items.reduce<T | undefined>(
    (least, item) => (least === undefined || isLess(key(item), key(least)) ? item : least),
    undefined,
  );
}

function isLess(a: readonly (number | string)[], b: readonly (number | string)[]): boolean {
  const i = a.findIndex((one, at) => one !== b[at]);
  return i >= 0 && (a[i] as number | string) < (b[i] as number | string);
}
