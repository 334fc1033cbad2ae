/**
 * Times at which a schedule fires: multiples of an interval since 1970, or cron fields in a time zone. Jitter is not
 * part of these times.
 */
import { Cron } from 'croner';
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
/** Every February 29 comes within this time, also around 2100. */
const searchedMs = (366 * 8 + 2) * dayMs;

function* multiples(everyMs: number, after: Date): Generator<Date> {
  for (let n = Math.floor(after.getTime() / everyMs) + 1; ; n++) yield new Date(n * everyMs);
}

/**
 * Croner searches the calendar as if it were in UTC, and toUtc places what it finds in the time zone. If croner knew
 * the zone, it would move a time that a clock change skips behind the gap, and use some repeated times twice.
 */
function* cronTimes({ cron, timezone }: Extract<ScheduleTimes, { type: 'cron' }>, after: Date): Generator<Date> {
  const calendar = new Cron(numbersOf(parseCron(cron)), { mode: '5-part', domAndDow: true, utcOffset: 0 });
  const clock = clockOf(timezone);
  let last = after.getTime();
  let local = calendar.nextRun(new Date(last + clock(last)));
  for (; local !== null && local.getTime() - last < searchedMs; local = calendar.nextRun(local)) {
    const moment = toUtc(local.getTime(), clock);
    if (moment === undefined || moment <= last) continue; // skipped by a clock change, or repeated by one
    last = moment;
    yield new Date(moment);
  }
}

/** Cron fields as lists of numbers, so that croner and parseCron cannot read them differently. */
function numbersOf({ minutes, hours, daysOfMonth, months, daysOfWeek }: CronFields): string {
  return [minutes, hours, daysOfMonth, months, daysOfWeek].map((values) => values.join(',')).join(' ');
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
