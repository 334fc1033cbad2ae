import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCron } from './cron.ts';
import { durationMs, parseDuration, showSpan } from './duration.ts';
import { checkTimezone, leastIntervalMs, showTimes, timesAfter, timesWithin } from './times.ts';
import type { ScheduleTimes } from './times.ts';

const cron = (text: string, timezone = 'UTC'): ScheduleTimes => ({ type: 'cron', cron: text, timezone });
const iso = (dates: readonly Date[]) => dates.map((date) => date.toISOString().slice(0, 16));

describe('durations', () => {
  it.each([
    ['90s', 90],
    ['10m', 600],
    ['1h30m', 5400],
    ['2d', 172_800],
    ['1d2h3m4s', 93_784],
  ])('%s is %i s', (text, seconds) => {
    expect(durationMs(text)).toBe(seconds * 1000);
  });

  it.each(['', '10', 'm', '10 m', '1.5h', '-5m', '10m1h', '5min', '1e3s', '10M'])('%j is not a duration', (text) => {
    expect(durationMs(text)).toBeUndefined();
    expect(() => parseDuration(text, '--every')).toThrow(/^--every: expected a duration/);
  });

  it('have limits', () => {
    expect(() => parseDuration('0s', '--every')).toThrow('--every: expected at least 1s, got 0s');
    expect(() => parseDuration('99999d', '--every')).toThrow(/at most/);
    expect(parseDuration('0s', '--jitter', 0)).toBe(0);
  });

  it('can be parsed from their own text', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 10 ** 8 }),
        (seconds) => durationMs(showSpan(seconds * 1000)) === seconds * 1000,
      ),
    );
  });
});

describe('cron', () => {
  it.each([
    ['* * * *', 'expected 5 fields'],
    ['', 'got 0'],
    ['60 * * * *', 'minute: expected 0 to 59, got "60"'],
    ['* 24 * * *', 'hour: expected 0 to 23'],
    ['* * 0 * *', 'day of month: expected 1 to 31'],
    ['* * * 13 *', 'month: expected 1 to 12 or jan, feb …, got "13"'],
    ['* * * * 8', 'day of week: expected 0 to 7 or sun, mon …'],
    ['5-1 * * * *', 'ends before it starts'],
    ['*/0 * * * *', 'a step is a number from 1 on'],
    ['5/10 * * * *', 'behind * or a range'],
    ['1,,2 * * * *', 'minute: expected 0 to 59, got ""'],
    ['1-2-3 * * * *', 'no value, range or step'],
    ['0 0 13 * fri', 'cannot both be chosen'],
    ['0 0 31 feb,apr *', 'would never come'],
    ['@daily', 'expected 5 fields'],
  ])('%j is refused: %s', (text, why) => {
    expect(() => parseCron(text)).toThrow(
      expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(why) }),
    );
  });

  it('takes ranges, steps, lists and words', () => {
    expect(parseCron('*/20 9-17/4 * jan,MAR-apr mon-wed,sun')).toEqual({
      minutes: [0, 20, 40],
      hours: [9, 13, 17],
      daysOfMonth: Array.from({ length: 31 }, (_, i) => i + 1),
      months: [1, 3, 4],
      daysOfWeek: [0, 1, 2, 3],
    });
    expect(parseCron('0 0 * * 5-7').daysOfWeek).toEqual([0, 5, 6]);
  });

  it('returns fields or an error for any text', () => {
    const symbol = fc.constantFrom('*', '/', '-', ',', ' ', '0', '1', '5', '31', '59', 'mon', 'jan', 'x');
    fc.assert(
      fc.property(fc.array(symbol, { maxLength: 20 }), (symbols) => {
        try {
          const { minutes, hours } = parseCron(symbols.join(''));
          return [...minutes, ...hours].every((value) => Number.isInteger(value) && value >= 0 && value < 60);
        } catch (error) {
          return error instanceof Error && error.message.startsWith('--cron');
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('times', () => {
  it('of an interval are its multiples since 1970', () => {
    const every = { type: 'every', everyMs: 600_000 } as const;
    expect(iso(timesAfter(every, new Date('2026-11-21T13:40:00Z'), 2))).toEqual([
      '2026-11-21T13:50',
      '2026-11-21T14:00',
    ]);
    expect(iso(timesWithin(every, new Date('2026-11-21T13:40:00Z'), new Date('2026-11-21T14:00:00Z'), 9))).toEqual([
      '2026-11-21T13:40',
      '2026-11-21T13:50',
      '2026-11-21T14:00',
    ]);
  });

  it('stop at `until`', () => {
    expect(
      timesAfter(cron('0 * * * *'), new Date('2026-11-21T13:40:00Z'), 9, new Date('2026-11-21T15:30:00Z')),
    ).toHaveLength(2);
  });

  it('skip the hour that a clock change skips, and use the repeated hour once', () => {
    const berlin = cron('30 2 * * *', 'Europe/Berlin');
    expect(iso(timesAfter(berlin, new Date('2026-03-28T00:00:00Z'), 2))).toEqual([
      '2026-03-28T01:30',
      '2026-03-30T00:30',
    ]);
    expect(iso(timesAfter(berlin, new Date('2026-10-24T12:00:00Z'), 2))).toEqual([
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ]);
  });

  it('of any schedule ascend, start after the given time, and do not depend on it', () => {
    const field = (most: number, least = 0) =>
      fc.oneof(
        fc.constant('*'),
        fc.integer({ min: least, max: most }).map(String),
        fc.integer({ min: 2, max: 20 }).map((step) => `*/${step}`),
      );
    const text = fc
      .tuple(field(59), field(23), fc.constant('*'), field(12, 1), field(6))
      .map((parts) => parts.join(' '));
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe');
    const start = fc.integer({ min: 1_700_000_000, max: 1_900_000_000 }).map((seconds) => new Date(seconds * 1000));
    fc.assert(
      fc.property(text, zone, start, (fields, timezone, from) => {
        const times = timesAfter(cron(fields, timezone), from, 6);
        expect(times).toHaveLength(6);
        times.forEach((time, i) => expect(time.getTime()).toBeGreaterThan((times[i - 1] ?? from).getTime()));
        expect(timesAfter(cron(fields, timezone), times[2] ?? from, 3)).toEqual(times.slice(3));
      }),
      { numRuns: 60 },
    );
  });

  it('are the minutes whose wall clock matches for the first time, in every zone and around clock changes', () => {
    const list = (least: number, most: number) =>
      fc.oneof(
        fc.constant('*'),
        fc.integer({ min: 1, max: 20 }).map((step) => `*/${step}`),
        fc.array(fc.integer({ min: least, max: most }), { minLength: 1, maxLength: 5 }).map((values) => values.join()),
      );
    const days = fc.oneof(
      fc.constant('* * *'),
      list(1, 31).map((day) => `${day} * *`),
      list(0, 7).map((day) => `* * ${day}`),
      list(1, 12).map((month) => `* ${month} *`),
    );
    const zone = fc.constantFrom('UTC', ...Intl.supportedValuesOf('timeZone'));
    const place = fc.tuple(zone, fc.nat(), fc.integer({ min: -600, max: 90 }));
    fc.assert(
      fc.property(list(0, 59), list(0, 23), days, place, (minute, hour, day, [timezone, nth, after]) => {
        const text = `${minute} ${hour} ${day}`;
        const wall = wallClock(timezone);
        const from = new Date(nthChangeOf2027(wall, nth) + after * minuteMs);
        const to = new Date(from.getTime() + 1_000 * minuteMs);
        expect(iso(timesWithin(cron(text, timezone), from, to, 10_000))).toEqual(matchingMinutes(text, wall, from, to));
      }),
      { numRuns: 200 },
    );
  });

  it('are at least their shortest interval apart', () => {
    const now = new Date('2026-11-21T13:40:00Z');
    expect(leastIntervalMs({ type: 'every', everyMs: 5_000 }, now)).toBe(5_000);
    expect(leastIntervalMs(cron('0 9,18 * * mon-fri'), now)).toBe(9 * 3_600_000);
    expect(leastIntervalMs(cron('0 3 * * *'), now)).toBe(24 * 3_600_000);
  });

  it('have a text and a checked time zone', () => {
    expect([showTimes({ type: 'every', everyMs: 5_400_000 }), showTimes(cron('0 3 * * *', 'Europe/Berlin'))]).toEqual([
      'every 1h30m',
      'cron 0 3 * * * (Europe/Berlin)',
    ]);
    expect(() => checkTimezone('Europe/Berlinn')).toThrow(/no time zone "Europe\/Berlinn"/);
    checkTimezone('Europe/Berlin');
  });
});

const minuteMs = 60_000;
const quarterMs = 15 * minuteMs;

/** Shows what a clock of the time zone shows, as if that were UTC. */
function wallClock(timeZone: string): (utc: number) => Date {
  // Swedish writes 2027-03-28 01:59:00.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  const known = new Map<number, number>();
  return (utc) => {
    const quarter = Math.floor(utc / quarterMs) * quarterMs; // every zone changes its clocks at a quarter hour
    const shown = known.get(quarter) ?? Date.parse(`${format.format(quarter).replace(' ', 'T')}Z`);
    known.set(quarter, shown);
    return new Date(shown + utc - quarter);
  };
}

/** The minute when a zone changes its clocks in 2027; new year where it never does. */
function nthChangeOf2027(wall: (utc: number) => Date, nth: number): number {
  const offset = (utc: number) => wall(utc).getTime() - utc;
  const days = Array.from({ length: 365 }, (_, day) => Date.UTC(2027, 0, 1 + day));
  const changing = days.filter((day) => offset(day) !== offset(day + 96 * quarterMs));
  const day = changing[nth % changing.length];
  if (day === undefined) return Date.UTC(2027, 0, 1);
  const quarters = Array.from({ length: 97 }, (_, index) => day + index * quarterMs);
  return quarters.find((utc) => offset(utc) !== offset(day)) ?? day;
}

/** Looks at every minute: does its wall clock match, and did no earlier one of a day show the same? */
function matchingMinutes(text: string, wall: (utc: number) => Date, from: Date, to: Date): string[] {
  const { minutes, hours, daysOfMonth, months, daysOfWeek } = parseCron(text);
  const shown = new Set<number>();
  const found: Date[] = [];
  const first = Math.ceil(from.getTime() / minuteMs) * minuteMs;
  for (let utc = first - 1_440 * minuteMs; utc <= to.getTime(); utc += minuteMs) {
    const local = wall(utc);
    const fits =
      minutes.includes(local.getUTCMinutes()) &&
      hours.includes(local.getUTCHours()) &&
      daysOfMonth.includes(local.getUTCDate()) &&
      months.includes(local.getUTCMonth() + 1) &&
      daysOfWeek.includes(local.getUTCDay());
    if (fits && utc >= first && !shown.has(local.getTime())) found.push(new Date(utc));
    shown.add(local.getTime());
  }
  return iso(found);
}
