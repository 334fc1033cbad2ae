/** Random numbers of a seed (mulberry32): the same on every machine. */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Time until the next event of a process with so many events per hour, in seconds. */
export const exponential = (random: Random, perHour: number): number =>
  perHour <= 0 ? Number.POSITIVE_INFINITY : (-Math.log(1 - random()) * 3600) / perHour;
