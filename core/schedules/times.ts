/**
 * Times at which a schedule fires: multiples of an interval since 1970, or cron fields in a time zone. Jitter is not
 * part of these times.
 */
import { InvalidInputError } from '../errors.ts';
import { showValue } from '../recipe/show-value.ts';
import { parseCron } from './cron.ts';
import type { CronFields } from './cron.ts';
import { showSpan } from './duration.ts';

export type ScheduleTimes =
  | { readonly type: 'every'; readonly everyMs: number }
  | { readonly type: 'cron'; readonly cron: string; readonly timezone: string };

/** `every 10m`, `cron 0 3 * * *`, `cron 0 3 * * * (Europe/Berlin)`. */
export function showTimes(times: ScheduleTimes): string {
  if (times.type === 'every') return `every ${showSpan(times.everyMs)}`;
  return `cron ${times.cron}${times.timezone === 'UTC' ? '' : ` (${times.timezone})`}`;
}

/**
 * The first `count` times after `after`, ascending; fewer when the next one is after `until`, or more than eight years
 * away.
 */
export function timesAfter(times: ScheduleTimes, after: Date, count: number, until?: Date): Date[] {
  const found: Date[] = [];
  for (const time of times.type === 'every' ? multiples(times.everyMs, after) : cronTimes(times, after)) {
    if (found.length === count || (until !== undefined && time > until)) break;
    found.push(time);
  }
  return found;
}

/** All times of [from, to], ascending; at most `limit`. */
export function timesWithin(times: ScheduleTimes, from: Date, to: Date, limit: number): Date[] {
  return timesAfter(times, new Date(from.getTime() - 1), limit, to);
}

const lookedAt = 400;

/**
 * The shortest distance between two of the next times, which is "one interval". One day when there are fewer than two.
 */
export function leastIntervalMs(times: ScheduleTimes, now: Date): number {
  if (times.type === 'every') return times.everyMs;
  const next = timesAfter(times, now, lookedAt).map((time) => time.getTime());
  const distances = next.slice(1).map((time, index) => time - (next[index] ?? 0));
  return distances.length === 0 ? dayMs : Math.min(...distances);
}

/** Throws InvalidInputError for a time zone that is not in the tz database. */
export function checkTimezone(timezone: string): void {
  try {
    clockOf(timezone);
  } catch (cause) {
    throw new InvalidInputError(`--timezone: there is no time zone ${showValue(timezone)}`, {
      hint: 'names are those of the tz database: UTC, Europe/Berlin, America/New_York',
      cause,
    });
  }
}

const dayMs = 86_400_000;
/** Every February 29 comes within this many days, also around 2100. */
const searchedDays = 366 * 8 + 2;

function* multiples(everyMs: number, after: Date): Generator<Date> {
  for (let n = Math.floor(after.getTime() / everyMs) + 1; ; n++) yield new Date(n * everyMs);
}

function* cronTimes({ cron, timezone }: Extract<ScheduleTimes, { type: 'cron' }>, after: Date): Generator<Date> {
  const fields = parseCron(cron);
  const clock = clockOf(timezone);
  const start = Math.floor((after.getTime() + clock(after.getTime())) / dayMs) * dayMs;
  let last = after.getTime();
  let lastDay = 0;
  for (let day = 0; day < lastDay + searchedDays; day++) {
    for (const moment of momentsOf(fields, clock, start + day * dayMs)) {
      if (moment <= last) continue; // before the start, or an hour that a clock change repeats
      last = moment;
      lastDay = day;
      yield new Date(moment);
    }
  }
}

/** `local`: midnight of a local day, treated as UTC. */
function* momentsOf(
  { minutes, hours, daysOfMonth, months, daysOfWeek }: CronFields,
  clock: Clock,
  local: number,
): Generator<number> {
  const date = new Date(local);
  if (
    !months.includes(date.getUTCMonth() + 1) ||
    !daysOfMonth.includes(date.getUTCDate()) ||
    !daysOfWeek.includes(date.getUTCDay())
  )
    return;
  for (const hour of hours) {
    for (const minute of minutes) {
      const moment = toUtc(local + hour * 3_600_000 + minute * 60_000, clock);
      if (moment !== undefined) yield moment;
    }
  }
}

/** Offset of a zone from UTC at a time, both in milliseconds. */
type Clock = (utc: number) => number;

function clockOf(timezone: string): Clock {
  if (timezone === 'UTC') return () => 0;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (utc) => {
    const parts = Object.fromEntries(format.formatToParts(utc).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(utc / 1000) * 1000;
  };
}

/** The first moment when clocks show this time; undefined if a clock change skips it. */
function toUtc(local: number, clock: Clock): number | undefined {
  const candidates = [local - clock(local - dayMs), local - clock(local + dayMs)].filter(
    (utc) => utc + clock(utc) === local,
  );
  return candidates.length === 0 ? undefined : Math.min(...candidates);
}
