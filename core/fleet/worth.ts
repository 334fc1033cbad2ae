/**
 * What one more worker is worth. With n workers an iteration takes W/n + U seconds: its rollouts, divided, and the
 * rest, during which they wait. Legend: W `rolloutSeconds`, U `otherSeconds`, p price of a worker, F price of
 * everything that waits for them, per hour. A run that has workers of its own, which are not bought, has these besides:
 * `own`.
 *
 * One more worker saves W/n − W/(n+1) seconds of F and of the n workers, and costs its own price for a whole iteration,
 * whose rest it waits through. It pays while the first is more than the second.
 */
import type { Demand } from './types.ts';

/** Seconds of an iteration with n workers; infinite without any. */
export function iterationSeconds({ rolloutSeconds: W, otherSeconds: U, own = 0 }: Demand, n: number): number {
  return n + own === 0 ? (W === 0 ? U : Number.POSITIVE_INFINITY) : W / (n + own) + U;
}

/** Dollars that worker n + 1 saves, divided by what it costs, per iteration. More than 1: it pays. */
export function worthOfNext(demand: Demand, n: number, usdPerHour: number): number {
  const { rolloutSeconds: W, waitingUsdPerHour: F, own = 0 } = demand;
  if (W === 0) return 0;
  if (n + own === 0) return Number.POSITIVE_INFINITY; // without a worker the run stands still
  const saved = W / (n + own) - W / (n + own + 1);
  return (saved * (F + n * usdPerHour)) / (usdPerHour * iterationSeconds(demand, n + 1));
}

/** Workers with which an iteration takes at most so long; undefined: no number of workers does. */
export function workersFor(demand: Demand, seconds: number): number | undefined {
  const { rolloutSeconds: W, otherSeconds: U, own = 0 } = demand;
  if (W === 0) return 0;
  return seconds > U ? Math.max(0, Math.ceil(W / (seconds - U)) - own) : undefined;
}

/** Worths that differ by less are equal: where nothing waits for the workers, every number of them costs the same. */
const rounding = 1e-9;

/** Each of several runs of a pool, with its workers. */
export interface Share {
  readonly demand: Demand;
  workers: number;
}

/**
 * Divides workers among runs, one after the other, each to the run for which it is worth most by priority, until the
 * next one is worth less than `least`, or there are `most`. So more demand never means fewer workers.
 */
export function shares(demands: readonly Demand[], usdPerHour: number, least: number, most: number): Share[] {
  const given = demands.map((demand): Share => ({ demand, workers: 0 }));
  for (let n = 0; n < most; n++) {
    let best: Share | undefined;
    let bestWorth = 0;
    for (const share of given) {
      const worth = worthOfNext(share.demand, share.workers, usdPerHour);
      if (worth < least - rounding || worth * share.demand.priority <= bestWorth) continue;
      best = share;
      bestWorth = worth * share.demand.priority;
    }
    if (best === undefined) break;
    best.workers += 1;
  }
  return given;
}
