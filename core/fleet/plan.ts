/**
 * How many instances a fleet should have, and where. A pure function of what was measured: it has no memory, so whoever
 * loses its answer asks again. Every change says why.
 *
 * 1. `worth.ts`: workers are added while the next one pays, up to what a deadline needs.
 * 2. A fleet that is nearly of that size is left as it is, so a plan does not flap.
 * 3. Bounds, budgets and `maxUsdPerHour` cut what is wanted; what they cut is said.
 * 4. `spread.ts`: the instances go to zones.
 */
import { countsOf, dearestPlace, nextPlace, samePlace, total } from './spread.ts';
import type { Counts } from './spread.ts';
import { placeName } from './types.ts';
import type { Decision, Demand, Pause, Plan, PlanInput, Pool, TrainerDemand } from './types.ts';
import { iterationSeconds, shares, workersFor, worthOfNext } from './worth.ts';
import type { Share } from './worth.ts';

/** Iterations whose price a run keeps back: the one in progress and the one that drains. */
const reservedIterations = 2;
/** A bound on the rounds of moves and cuts. 100,000 random fleets needed fewer. */
const mostRounds = 20;

export function plan(input: PlanInput): Plan {
  const notes: string[] = [];
  const pauses: Pause[] = [];
  const pools = input.pools.map((pool) => {
    const paid = input.demands.filter((demand) => demand.pool === pool.name && isPaid(pool, demand, pauses));
    const forRollouts = wanted(pool, paid, input, notes);
    const trainers = (input.trainers ?? []).filter((one) => one.pool === pool.name && isTrainerPaid(pool, one, pauses));
    return { pool, ...withTrainers(pool, forRollouts, trainers), counts: countsOf(pool, input.instances) };
  });
  const before = pools.map(({ counts }) => new Map(counts));
  notes.push(...settle(pools, input));
  const decisions = pools.flatMap((one, i) => changes(one, before[i] ?? new Map()));
  const reasons = (pools as readonly PoolPlan[]).map(({ pool: { name }, counts, because, cut }) => ({
    pool: name,
    count: total(counts),
    because: cut ?? because,
  }));
  return { decisions, reasons, pauses, notes };
}

interface Wanted {
  readonly count: number;
  readonly because: string;
}
interface PoolPlan extends Wanted {
  readonly pool: Pool;
  readonly counts: Counts;
  /** Why it has less than it wants. */
  cut?: string;
}

/** Has the run the money for its next iterations? One that has not pauses, and has no workers. */
function isPaid(pool: Pool, demand: Demand, pauses: Pause[]): boolean {
  if (demand.budgetUsd === undefined || (demand.isGuess === true && demand.budgetUsd > 0)) return true;
  const price = iterationUsd(demand, 1, cheapestOf(pool));
  const reserve = price * reservedIterations;
  if (!(demand.budgetUsd < reserve)) return true;
  pauses.push({
    run: demand.run,
    because: `its budget has ${usd(demand.budgetUsd)} left, and ${reservedIterations} iterations at ${usd(price)} are kept back to end the present one and to drain`,
  });
  return false;
}

/** The same for a trainer, by the price of its own iterations. */
function isTrainerPaid(pool: Pool, trainer: TrainerDemand, pauses: Pause[]): boolean {
  const { run, count, budgetUsd, iterationSeconds: takes = 0 } = trainer;
  const price = (count * cheapestOf(pool) * takes) / 3600;
  if (budgetUsd === undefined || (budgetUsd > 0 && budgetUsd >= price * reservedIterations)) return true;
  if (!pauses.some((pause) => pause.run === run))
    pauses.push({
      run,
      because: `its budget has ${usd(budgetUsd)} left, and ${reservedIterations} iterations of its trainer at ${usd(price)} are kept back`,
    });
  return false;
}

/** Dollars of an iteration with n workers. */
function iterationUsd(demand: Demand, n: number, usdPerHour: number): number {
  if (demand.rolloutSeconds === 0) return 0;
  return ((demand.waitingUsdPerHour + n * usdPerHour) * iterationSeconds(demand, n)) / 3600;
}

function wanted(pool: Pool, demands: readonly Demand[], { instances, idleFor }: PlanInput, notes: string[]): Wanted {
  const now = total(countsOf(pool, instances));
  const within = (count: number) => Math.min(pool.max, Math.max(pool.min, count));
  const idle = idleFor?.[pool.name];
  const active = demands.filter(({ rolloutSeconds }) => rolloutSeconds > 0);
  if (active.length === 0) {
    if (idle !== undefined && idle < pool.idleSeconds && now > pool.min)
      return {
        count: within(now),
        because: `no run has needed it for ${seconds(idle)}; it goes after ${seconds(pool.idleSeconds)}`,
      };
    return {
      count: within(0),
      because: `no run needs it${pool.min > 0 ? `, and its lower bound is ${pool.min}` : ''}`,
    };
  }
  const price = cheapestOf(pool);
  const given = shares(active, price, 1, pool.max);
  const band = bandOf(pool);
  const low = sum(shares(active, price, band, pool.max));
  const high = sum(shares(active, price, 1 / band, pool.max));
  const due = Math.min(pool.max, deadlines(pool, active, notes));
  const count = within(Math.max(due, now < low || now > high ? sum(given) : now));
  return { count, because: reason(pool, given, count, now, due, price) };
}

/** A trainer of the pool samples, too, where the pool has that role: the larger number serves both. */
function withTrainers({ max }: Pool, forRollouts: Wanted, trainers: readonly TrainerDemand[]): Wanted {
  const needed = trainers.reduce((all, { count }) => all + count, 0);
  const count = Math.min(max, needed);
  if (count <= forRollouts.count) return forRollouts;
  const runs = trainers.map(({ run }) => run).join(' and ');
  const what = needed === 1 ? 'a trainer' : `${needed} trainers`;
  return { count, because: `${runs} need${trainers.length === 1 ? 's' : ''} ${what}` };
}

/**
 * A fleet is left as it is while its last worker's worth is within this factor of its price. A machine that boots for
 * long must pay more clearly.
 */
const bandOf = ({ bootSeconds }: Pool): number => Math.min(2, 1.1 + bootSeconds / 1_000);

/** Workers without which a deadline is missed. */
function deadlines(pool: Pool, demands: readonly Demand[], notes: string[]): number {
  let due = 0;
  for (const demand of demands) {
    if (demand.deadline === undefined || demand.deadline.iterationsLeft <= 0) continue;
    const { secondsLeft, iterationsLeft } = demand.deadline;
    const needed = workersFor(demand, secondsLeft / iterationsLeft);
    if (needed === undefined || needed > pool.max)
      notes.push(
        `${demand.run} cannot keep its deadline: ${iterationsLeft} iterations in ${seconds(secondsLeft)} need ${needed === undefined ? 'a faster trainer' : `${needed} workers, and ${pool.name} has at most ${pool.max}`}`,
      );
    due += needed ?? pool.max;
  }
  return due;
}

function reason(pool: Pool, given: readonly Share[], count: number, now: number, due: number, price: number): string {
  if (count === pool.max && sum(given) >= pool.max) return `more would pay, and its upper bound is ${pool.max}`;
  if (count === pool.min && sum(given) < pool.min) return `its lower bound is ${pool.min}`;
  if (count > now && due === count) return `a deadline needs ${due}`;
  const first = given.reduce((a, b) => (b.workers > a.workers ? b : a));
  const { demand, workers } = first;
  if (demand.isGuess === true) return `${demand.run} needs a worker for its first iteration`;
  const n = (demand.own ?? 0) === 0 ? Math.max(1, workers) : workers;
  const waits = `${demand.run} waits ${seconds(demand.rolloutSeconds / (n + (demand.own ?? 0)))} of ${seconds(iterationSeconds(demand, n))} of an iteration for rollouts`;
  const next = worthOfNext(demand, n, price);
  if (count > now) return `${waits}; a worker saves more than it costs up to ${workers}`;
  return `${waits}; one more would save ${next.toFixed(2)} of what it costs`;
}

/**
 * Moves and cuts until nothing changes, because a dear instance that is cut may leave the money for a cheaper one:
 * otherwise the next plan would buy that one. Returns what it could not do.
 */
function settle(pools: readonly PoolPlan[], input: PlanInput): string[] {
  for (let round = 1; ; round++) {
    const before = pools.flatMap(({ counts }) => [...counts.values()]);
    const notes = pools.flatMap((one) => move(one, input) ?? []);
    const cut = cutToPrice(pools, input.maxUsdPerHour);
    const after = pools.flatMap(({ counts }) => [...counts.values()]);
    if (round === mostRounds || after.every((count, i) => count === before[i])) return [...notes, ...cut];
  }
}

/** Adds or gives back one after the other, each where it is best. Returns why it added less than it should. */
function move(one: PoolPlan, { refusals }: PlanInput): string | undefined {
  const { pool, count, counts } = one;
  while (total(counts) > count) take(counts, dearestPlace(pool, counts));
  if (total(counts) >= count) return undefined;
  if (refusals.some(({ kind, place }) => kind === 'limit' && pool.places.some((own) => samePlace(own, place)))) {
    one.cut = 'the account may not have more instances';
    return `${pool.name} wants ${count - total(counts)} more, but ${one.cut}`;
  }
  while (total(counts) < count) {
    const place = nextPlace(pool, counts, refusals);
    if (place === undefined)
      return `${pool.name} wants ${count - total(counts)} more, but no place has capacity at present`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return undefined;
}

function take(counts: Counts, place: Parameters<Counts['get']>[0] | undefined): void {
  if (place === undefined) throw new RangeError('nothing is left to give back');
  counts.set(place, (counts.get(place) ?? 0) - 1);
}

/**
 * Gives back the dearest until the price is allowed, also below lower bounds: money is the harder limit. Returns a note
 * on it.
 */
function cutToPrice(pools: readonly PoolPlan[], most: number | undefined): string[] {
  if (most === undefined) return [];
  const priceOf = (counts: Counts) => [...counts].reduce((all, [place, count]) => all + place.usdPerHour * count, 0);
  const price = () => pools.reduce((all, { counts }) => all + priceOf(counts), 0);
  const wants = price();
  while (price() > most) {
    const dearest = pools
      .filter(({ counts }) => total(counts) > 0)
      .reduce((a, b) => (priceOf(b.counts) > priceOf(a.counts) ? b : a));
    take(dearest.counts, dearestPlace(dearest.pool, dearest.counts));
    dearest.cut = `all pools may cost ${usd(most)} an hour`;
  }
  return price() < wants ? [`what pays would cost ${usd(wants)} an hour, and max_usd_per_hour is ${usd(most)}`] : [];
}

function changes({ pool, counts, because, cut }: PoolPlan, before: Counts): Decision[] {
  return pool.places.flatMap((place) => {
    const [from, to] = [before.get(place) ?? 0, counts.get(place) ?? 0];
    if (from === to) return [];
    const what = to > from ? `buy ${to - from}` : `give back ${from - to}`;
    return { pool: pool.name, place, from, to, because: `${what} ${placeName(place)}: ${cut ?? because}` };
  });
}

const cheapestOf = ({ places }: Pool): number => Math.min(...places.map(({ usdPerHour }) => usdPerHour));
const sum = (given: readonly Share[]): number => given.reduce((all, { workers }) => all + workers, 0);
const seconds = (value: number): string => (value < 90 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`);
const usd = (value: number): string => `$${value.toFixed(value < 1 ? 3 : 2)}`;
