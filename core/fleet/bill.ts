/** Turns what is known of instances and of their jobs into what `cost.ts` divides: spans that do not overlap. */
import type { BilledInstance, Span } from './cost.ts';
import type { UsageRecord } from './records.ts';

/** An instance as its records tell. Times in seconds. */
export interface InstanceHistory {
  readonly id: string;
  readonly pool: string;
  readonly zone: string;
  readonly usdPerHour: number;
  readonly launchedAt: number;
  /** The name that its jobs know. */
  readonly instance?: string;
  /** Time at which it took jobs for the first time. */
  readonly readyAt?: number;
  readonly endedAt?: number;
}

/** A job on a machine. */
export type Used = UsageRecord['spans'][number];

export interface Bill {
  readonly instances: readonly BilledInstance[];
  readonly spans: readonly Span[];
}

/** `now`: until when instances that still run are billed, in seconds. */
export function billOfFleet(histories: readonly InstanceHistory[], used: readonly Used[], now: number): Bill {
  const byMachine = new Map<string, Used[]>();
  for (const one of used) {
    const known = byMachine.get(one.instance);
    if (known === undefined) byMachine.set(one.instance, [one]);
    else known.push(one);
  }
  const instances: BilledInstance[] = [];
  const spans: Span[] = [];
  for (const { instance, readyAt, endedAt = now, ...history } of histories) {
    const { id, launchedAt } = history;
    const end = Math.max(launchedAt, endedAt);
    instances.push({ ...history, endedAt: end });
    const ready = Math.min(end, Math.max(launchedAt, readyAt ?? end));
    if (ready > launchedAt) spans.push({ instance: id, from: launchedAt, to: ready, use: 'booting' });
    const jobs = instance === undefined ? [] : (byMachine.get(instance) ?? []);
    spans.push(...allOf(id, jobs, ready, end));
  }
  return { instances, spans };
}

/**
 * Spans of one machine from `from` to `to`: of jobs side by side the first one counts, and a gap between two jobs of a
 * run is waiting.
 */
function allOf(instance: string, jobs: readonly Used[], from: number, to: number): Span[] {
  const spans: Span[] = [];
  let at = from;
  let last: Used | undefined;
  for (const job of [...jobs].sort((a, b) => a.from - b.from || a.to - b.to)) {
    const { run, iteration, use } = job;
    const [begin, end] = [Math.max(at, job.from), Math.min(to, job.to)];
    if (end <= begin) continue;
    if (begin > at && last?.run === run) spans.push({ instance, from: at, to: begin, use: 'waiting', run, iteration });
    spans.push({ instance, from: begin, to: end, use, run, iteration });
    at = end;
    last = job;
  }
  return spans;
}
