/**
 * What a fleet has cost, and for what. An instance is billed from its launch to its end; its time is divided among what
 * it did. All sums are in whole micro-dollars, so the parts of a bill are exactly the bill.
 */

/** What a machine did for a stretch of time. `idle`: for nobody. */
export const uses = ['useful', 'waiting', 'lost', 'redone', 'booting', 'transfer', 'idle'] as const;
export type Use = (typeof uses)[number];

/** An instance, as it is billed. Times in seconds. */
export interface BilledInstance {
  readonly id: string;
  readonly pool: string;
  readonly zone: string;
  readonly usdPerHour: number;
  readonly launchedAt: number;
  readonly endedAt: number;
}

/** What it did from `from` to `to`. Spans of one instance do not overlap; what none covers is idle. */
export interface Span {
  readonly instance: string;
  readonly from: number;
  readonly to: number;
  readonly use: Exclude<Use, 'idle'>;
  /** Absent: it belongs to the stack. */
  readonly run?: string;
  readonly iteration?: number;
}

/** A part of a bill. */
export interface Charge {
  readonly microUsd: number;
  readonly pool: string;
  readonly zone: string;
  readonly use: Use;
  readonly run?: string;
  readonly iteration?: number;
}

/** The shortest time that is billed: of Linux instances of EC2 a minute. */
export const leastBilledSeconds = 60;

export function billOf({ usdPerHour, launchedAt, endedAt }: BilledInstance): number {
  return Math.round((usdPerHour * 1e6 * Math.max(leastBilledSeconds, endedAt - launchedAt)) / 3600);
}

/** The charges of all instances. Throws RangeError for a span outside of its instance's time, or over another one. */
export function charges(instances: readonly BilledInstance[], spans: readonly Span[]): Charge[] {
  return instances.flatMap((instance) => {
    const own = spans.filter((span) => span.instance === instance.id).sort((a, b) => a.from - b.from);
    checkSpans(instance, own);
    const used = own.map(({ from, to }) => to - from);
    const billed = Math.max(leastBilledSeconds, instance.endedAt - instance.launchedAt);
    const idle = Math.max(0, billed - used.reduce((all, one) => all + one, 0));
    const { pool, zone } = instance;
    return divide(billOf(instance), [...used, idle]).map((microUsd, i): Charge => {
      const span = own[i];
      if (span === undefined) return { microUsd, pool, zone, use: 'idle' };
      const { use, run, iteration } = span;
      return {
        microUsd,
        pool,
        zone,
        use,
        ...(run !== undefined && { run }),
        ...(iteration !== undefined && { iteration }),
      };
    });
  });
}

function checkSpans({ id, launchedAt, endedAt }: BilledInstance, spans: readonly Span[]): void {
  let before = launchedAt;
  for (const { from, to } of spans) {
    if (from < before || to < from || to > endedAt)
      throw new RangeError(`${id}: expected spans in turn from ${launchedAt} to ${endedAt}, got ${from} to ${to}`);
    before = to;
  }
}

/**
 * A whole number in parts by weights ≥ 0, each within one of its exact share, that add up to it (largest remainder).
 * Without any weight the last part gets all.
 */
export function divide(whole: number, weights: readonly number[]): number[] {
  const total = weights.reduce((all, one) => all + one, 0);
  if (total === 0) return weights.map((_, i) => (i === weights.length - 1 ? whole : 0));
  const exact = weights.map((weight) => (whole * weight) / total);
  const parts = exact.map(Math.floor);
  const left = whole - parts.reduce((all, one) => all + one, 0);
  const byRemainder = exact
    .map((value, i) => ({ i, remainder: value - Math.floor(value) }))
    .sort((a, b) => b.remainder - a.remainder || a.i - b.i);
  for (const { i } of byRemainder.slice(0, left)) parts[i] = (parts[i] ?? 0) + 1;
  return parts;
}

/** Sums by one of the columns; `stack`: what belongs to no run. */
export function sumsBy(all: readonly Charge[], column: 'run' | 'pool' | 'zone' | 'use'): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const charge of all) {
    const name = charge[column] ?? 'stack';
    sums.set(name, (sums.get(name) ?? 0) + charge.microUsd);
  }
  return sums;
}
