/** Converts the options of `schedule add` to a record. The caller gives `now`; every error names its option. */
import { InvalidInputError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { showValue } from '../recipe/show-value.ts';
import type { ScheduleDefinition } from '../records/schema.ts';
import { parseCron } from './cron.ts';
import { isoSeconds, mostBackfilled } from './decide.ts';
import { durationMs, parseDuration, showSpan } from './duration.ts';
import { overlapPolicies } from '../records/overlap-policies.ts';
import type { OverlapPolicy } from '../records/overlap-policies.ts';
import { checkTimezone, leastIntervalMs, timesAfter, timesWithin } from './times.ts';
import type { ScheduleTimes } from './times.ts';

/** The texts that the user typed. */
export interface ScheduleRequest {
  readonly every?: string | undefined;
  readonly cron?: string | undefined;
  readonly timezone?: string | undefined;
  readonly overlap?: string | undefined;
  readonly jitter?: string | undefined;
  readonly until?: string | undefined;
  readonly catchUp?: string | undefined;
  readonly backfill?: string | undefined;
}

export type ScheduleTiming = Omit<ScheduleDefinition, 'kind' | 'recipe' | 'inputs'>;

/** Throws InvalidInputError. */
export function scheduleTiming(request: ScheduleRequest, now: Date): ScheduleTiming {
  const times = timesOf(request);
  const until = request.until === undefined ? undefined : momentOrSpan(request.until, now);
  const jitterMs = request.jitter === undefined ? 0 : parseDuration(request.jitter, '--jitter', 0);
  const interval = leastIntervalMs(times, now);
  if (jitterMs >= interval)
    throw new InvalidInputError(
      `--jitter: ${request.jitter} is not shorter than the interval of ${showSpan(interval)}`,
    );
  if (timesAfter(times, now, 1, until).length === 0) {
    throw new InvalidInputError('the schedule would never fire', {
      hint:
        until === undefined
          ? 'its next time is more than eight years away'
          : `--until ${until.toISOString()} comes before its first time`,
    });
  }
  return {
    since: now.toISOString(),
    times,
    overlap: overlapOf(request.overlap),
    ...(jitterMs === 0 ? {} : { jitterMs }),
    ...(until === undefined ? {} : { until: until.toISOString() }),
    catchUpMs: request.catchUp === undefined ? interval : parseDuration(request.catchUp, '--catch-up'),
    ...(request.backfill === undefined ? {} : { backfill: rangeOf(request.backfill, times, now) }),
  };
}

function timesOf({ every, cron, timezone }: ScheduleRequest): ScheduleTimes {
  if ((every === undefined) === (cron === undefined)) {
    throw new InvalidInputError(
      every === undefined ? 'when? --every or --cron is missing' : '--every and --cron: choose one',
      { hint: "--every 6h, or --cron '0 3 * * *'" },
    );
  }
  if (every !== undefined) {
    if (timezone !== undefined)
      throw new InvalidInputError('--timezone goes with --cron: an interval is the same everywhere');
    return { type: 'every', everyMs: parseDuration(every, '--every') };
  }
  const zone = timezone ?? 'UTC';
  parseCron(cron ?? '');
  checkTimezone(zone);
  return { type: 'cron', cron: (cron ?? '').trim().replace(/\s+/g, ' '), timezone: zone };
}

function overlapOf(text: string | undefined): OverlapPolicy {
  const found = overlapPolicies.find((policy) => policy === (text ?? 'skip'));
  if (found !== undefined) return found;
  const meant = nearest(text ?? '', overlapPolicies);
  throw new InvalidInputError(
    `--overlap: expected ${overlapPolicies.join(', ')}, got ${showValue(text)}`,
    meant === undefined ? {} : { hint: `did you mean ${meant}?` },
  );
}

/** A time in the future, or a duration from now. */
function momentOrSpan(text: string, now: Date): Date {
  const span = durationMs(text);
  const moment =
    span === undefined ? parseMoment(text, '--until', 'or a duration from now: 30d') : new Date(now.getTime() + span);
  if (moment > now) return moment;
  throw new InvalidInputError(`--until: ${text} has passed`);
}

/** `FROM..TO`; without TO up to now. */
function rangeOf(text: string, times: ScheduleTimes, now: Date): { from: string; to: string } {
  const [first = '', last, ...more] = text.split('..');
  if (last === undefined || more.length > 0 || first === '') {
    throw new InvalidInputError(`--backfill: expected FROM..TO, got ${showValue(text)}`, {
      hint: 'for instance 2026-11-01..2026-11-20, or 2026-11-01T03:00.. up to now',
    });
  }
  const from = parseMoment(first, '--backfill');
  const to = last === '' || last === 'now' ? now : parseMoment(last, '--backfill');
  if (from > to) throw new InvalidInputError(`--backfill: ${text} ends before it starts`);
  if (to > now) throw new InvalidInputError(`--backfill: ${last} is in the future; future times need no backfill`);
  const count = timesWithin(times, from, to, mostBackfilled + 1).length;
  if (count === 0) throw new InvalidInputError(`--backfill: the schedule has no time in ${text}`);
  if (count > mostBackfilled)
    throw new InvalidInputError(`--backfill: ${text} holds more than ${mostBackfilled} times of the schedule`, {
      hint: 'choose a shorter range',
    });
  return { from: isoSeconds(from), to: to.toISOString() };
}

const momentPattern = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?$/;

/** ISO 8601; UTC where it names no offset. */
function parseMoment(text: string, option: string, more?: string): Date {
  const match = momentPattern.exec(text);
  const [, day = '', minutes = '00:00', seconds = ':00', offset = 'Z'] = match ?? [];
  const moment = new Date(`${day}T${minutes}${seconds}${offset}`);
  // Date accepts 31 February and makes it March.
  if (match !== null && !Number.isNaN(moment.getTime()) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day))
    return moment;
  throw new InvalidInputError(`${option}: expected a date or time, got ${showValue(text)}`, {
    hint: `2026-11-21, 2026-11-21T03:00 (UTC), 2026-11-21T03:00+01:00${more === undefined ? '' : `, ${more}`}`,
  });
}
