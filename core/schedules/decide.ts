/**
 * Decides the outcome of a time of a schedule: applies the overlap policy to the facts in the store. It is pure, so
 * that every order of events can be tested. Appending the result as the next entry of the log makes the decision.
 */
import type { RunId } from '../ids.ts';
import type { FiringRecord, ScheduleRecord } from '../records/schema.ts';
import { timesWithin } from './times.ts';

/** One time of one generation of a schedule; it is decided once. */
export interface Firing {
  readonly generation: number;
  /** ISO, full seconds. */
  readonly time: string;
  /** A person triggered it, so it starts also while the schedule is paused. */
  readonly triggered: boolean;
}

export interface ScheduleView {
  /** Newest entry. */
  readonly record: ScheduleRecord | undefined;
  /** The newest entry of each firing, in order of their first. */
  readonly firings: readonly FiringRecord[];
  /** Runs of the schedule that have not ended: queued, running or paused, including resumed ones. */
  readonly active: readonly RunId[];
}

export type Decision =
  /** The schedule has been replaced or paused: no entry is written. */
  | { readonly type: 'drop'; readonly why: string }
  /** It was decided earlier. */
  | { readonly type: 'decided'; readonly firing: FiringRecord }
  | { readonly type: 'start' }
  | { readonly type: 'skip'; readonly why: string; readonly by: readonly RunId[] }
  | { readonly type: 'wait'; readonly why: string; readonly by: readonly RunId[]; readonly cancel: boolean };

/** Limit of the times of a backfill. */
export const mostBackfilled = 200;

export function decideFiring(view: ScheduleView, firing: Firing): Decision {
  const known = view.firings.find((one) => isOf(one, firing));
  if (known !== undefined && known.outcome !== 'waiting') return { type: 'decided', firing: known };
  const { record } = view;
  const gone =
    record === undefined || record.state === 'removed'
      ? 'the schedule was removed'
      : record.generation === firing.generation
        ? undefined
        : 'the schedule was replaced';
  if (record === undefined || gone !== undefined) return dropped(known, gone ?? '');
  const kind = kindOf(record, firing);
  if (kind === 'scheduled' && record.definition.until !== undefined && firing.time > record.definition.until)
    return dropped(known, 'the schedule had ended');
  if (record.state === 'paused' && kind !== 'triggered') {
    if (kind === 'scheduled' && known === undefined) return dropped(known, 'the schedule is paused');
    return wait('the schedule is paused');
  }
  return kind === 'backfill' ? inLine(view, record, firing) : byPolicy(view, record, firing);
}

export function kindOf({ definition }: ScheduleRecord, { time, triggered }: Firing): FiringRecord['kind'] {
  if (triggered) return 'triggered';
  const { since, backfill } = definition;
  return backfill !== undefined && time <= since && time >= backfill.from && time <= backfill.to
    ? 'backfill'
    : 'scheduled';
}

/** Times of the backfill that have not fired, ascending. */
export function missingBackfill(record: ScheduleRecord, firings: readonly FiringRecord[]): string[] {
  const { backfill, times } = record.definition;
  if (backfill === undefined || record.state === 'removed') return [];
  const there = new Set(firings.filter(({ generation }) => generation === record.generation).map(({ time }) => time));
  return timesWithin(times, new Date(backfill.from), new Date(backfill.to), mostBackfilled)
    .map(isoSeconds)
    .filter((time) => !there.has(time));
}

/** The time as a Date prints it, cut to the second: `2026-11-21T03:00:00.000Z`. */
export function isoSeconds(time: Date): string {
  return new Date(Math.floor(time.getTime() / 1000) * 1000).toISOString();
}

export function isOf(record: FiringRecord, { generation, time }: Pick<Firing, 'generation' | 'time'>): boolean {
  return record.generation === generation && record.time === time;
}

function byPolicy({ firings, active }: ScheduleView, { definition }: ScheduleRecord, firing: Firing): Decision {
  const waiting = firings.filter(
    (one) =>
      one.outcome === 'waiting' &&
      one.kind !== 'backfill' &&
      one.generation === firing.generation &&
      !isOf(one, firing),
  );
  const mine = firings.find((one) => isOf(one, firing))?.n ?? Number.POSITIVE_INFINITY;
  switch (definition.overlap) {
    case 'all':
      return { type: 'start' };
    case 'skip':
      return active.length === 0 ? { type: 'start' } : { type: 'skip', why: blockedText(active), by: active };
    case 'buffer': {
      const before = waiting.find(({ n }) => n < mine);
      if (before !== undefined) return { type: 'skip', why: `the one of ${before.time} waits already`, by: active };
      return active.length === 0 ? { type: 'start' } : wait(blockedText(active), active);
    }
    case 'cancel': {
      const after = waiting.find(({ n }) => n > mine);
      if (after !== undefined) return { type: 'skip', why: `the one of ${after.time} came after it`, by: active };
      return active.length === 0 ? { type: 'start' } : wait(`${active.join(', ')} is asked to cancel`, active, true);
    }
  }
}

/** Backfilled times start one after another in order of time, after the regular ones. */
function inLine({ firings, active }: ScheduleView, record: ScheduleRecord, firing: Firing): Decision {
  if (record.definition.overlap === 'all') return { type: 'start' };
  if (active.length > 0) return wait(blockedText(active), active);
  const waiting = firings.filter(
    (one) => one.outcome === 'waiting' && one.generation === firing.generation && !isOf(one, firing),
  );
  const ahead =
    waiting.find(({ kind, time }) => kind !== 'backfill' || time < firing.time)?.time ??
    missingBackfill(record, firings).find((time) => time < firing.time);
  return ahead === undefined ? { type: 'start' } : wait(`the one of ${ahead} comes first`);
}

/** A time that waited gets an entry with its outcome; another one gets none. */
function dropped(known: FiringRecord | undefined, why: string): Decision {
  return known === undefined ? { type: 'drop', why } : { type: 'skip', why, by: [] };
}

function wait(why: string, by: readonly RunId[] = [], cancel = false): Decision {
  return { type: 'wait', why, by, cancel };
}

function blockedText(active: readonly RunId[]): string {
  return `${active.join(', ')} ${active.length === 1 ? 'has' : 'have'} not ended`;
}
