import { describe, expect, it } from 'vitest';
import { scheduleTiming } from './request.ts';
import type { ScheduleRequest } from './request.ts';

const now = new Date('2026-11-21T13:40:07.250Z');
const timing = (request: ScheduleRequest) => scheduleTiming(request, now);

describe('schedule add', () => {
  it('has the defaults skip, UTC, and one interval to catch up', () => {
    expect(timing({ every: '10m' })).toEqual({
      since: now.toISOString(),
      times: { type: 'every', everyMs: 600_000 },
      overlap: 'skip',
      catchUpMs: 600_000,
    });
    expect(timing({ cron: ' 0  9,18 * * * ' })).toMatchObject({
      times: { type: 'cron', cron: '0 9,18 * * *', timezone: 'UTC' },
      catchUpMs: 9 * 3_600_000,
    });
  });

  it('accepts every option', () => {
    const all = {
      cron: '0 3 * * *',
      timezone: 'Europe/Berlin',
      overlap: 'cancel',
      jitter: '10m',
      until: '30d',
      catchUp: '6h',
      backfill: '2026-11-01..2026-11-03T12:00+01:00',
    };
    expect(timing(all)).toEqual({
      since: now.toISOString(),
      times: { type: 'cron', cron: '0 3 * * *', timezone: 'Europe/Berlin' },
      overlap: 'cancel',
      jitterMs: 600_000,
      until: '2026-12-21T13:40:07.250Z',
      catchUpMs: 6 * 3_600_000,
      backfill: { from: '2026-11-01T00:00:00.000Z', to: '2026-11-03T11:00:00.000Z' },
    });
    expect(timing({ every: '1d', backfill: '2026-11-19..' }).backfill?.to).toBe(now.toISOString());
  });

  it.each<[ScheduleRequest, string | RegExp]>([
    [{}, 'when? --every or --cron is missing'],
    [{ every: '1h', cron: '* * * * *' }, '--every and --cron: choose one'],
    [{ every: '1h', timezone: 'UTC' }, '--timezone goes with --cron: an interval is the same everywhere'],
    [{ every: 'hourly' }, '--every: expected a duration, got "hourly"'],
    [{ cron: 'daily' }, /^--cron "daily": expected 5 fields/],
    [{ cron: '0 3 * * *', timezone: 'Berlin' }, '--timezone: there is no time zone "Berlin"'],
    [{ every: '1h', overlap: 'skp' }, '--overlap: expected skip, buffer, cancel, all, got "skp"'],
    [{ every: '1h', jitter: '2h' }, '--jitter: 2h is not shorter than the interval of 1h'],
    [{ every: '1h', until: '2026-02-31' }, '--until: expected a date or time, got "2026-02-31"'],
    [{ every: '1h', until: '2020-01-01' }, '--until: 2020-01-01 has passed'],
    [{ every: '1d', until: '1h' }, 'the schedule would never fire'],
    [{ every: '1h', backfill: '2026-11-01' }, '--backfill: expected FROM..TO, got "2026-11-01"'],
    [{ every: '1h', backfill: '2026-11-02..2026-11-01' }, '--backfill: 2026-11-02..2026-11-01 ends before it starts'],
    [
      { every: '1h', backfill: '2026-11-01..2027-01-01' },
      '--backfill: 2027-01-01 is in the future; future times need no backfill',
    ],
    [
      { every: '1m', backfill: '2026-11-01..2026-11-02' },
      '--backfill: 2026-11-01..2026-11-02 holds more than 200 times of the schedule',
    ],
    [
      { every: '5d', backfill: '2026-11-21T00:00..2026-11-21T01:00' },
      '--backfill: the schedule has no time in 2026-11-21T00:00..2026-11-21T01:00',
    ],
  ])('refuses %j', (request, message) => {
    expect(() => timing(request)).toThrow(
      expect.objectContaining({
        code: 'InvalidInput',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      }),
    );
  });
});
