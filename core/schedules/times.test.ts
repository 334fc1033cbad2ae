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
