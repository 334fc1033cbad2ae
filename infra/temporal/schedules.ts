/**
 * Reconciles Temporal Schedules with a desired definition. Safe to call at any time, also several times in parallel;
 * the next call repairs a lost or older Temporal database.
 */
import { at } from '../../core/at.ts';
import { ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import type {
  Backfill,
  CalendarSpec,
  Client,
  ScheduleDescription,
  ScheduleOptions,
  ScheduleSpec,
} from '@temporalio/client';
import { parseCron } from '../../core/schedules/cron.ts';
import type { ScheduleTimes } from '../../core/schedules/times.ts';
import { taskQueue } from '../../core/wire/workflow.ts';
import { digestOf } from '../../log/objects/digest.ts';

/** The desired definition of a Schedule. */
export interface WantedSchedule {
  readonly id: string;
  readonly times: ScheduleTimes;
  /** Each time is delayed by a random part of this. */
  readonly jitterMs?: number;
  readonly until?: Date;
  /** How late an action may still be started after an outage. The server's minimum is 10 s. */
  readonly catchUpMs: number;
  /** `all`: the started workflow decides what happens when another one is running. */
  readonly overlap: 'skip' | 'all';
  readonly paused: boolean;
  /** Shown on Temporal's pages. */
  readonly note?: string;
  /** The workflow to start; Temporal appends the time to its id. */
  readonly action: { readonly workflow: string; readonly workflowId: string; readonly args: readonly unknown[] };
}

/** What an existing Schedule reports. */
export interface LiveSchedule {
  readonly paused: boolean;
  /** Including jitter. */
  readonly nextTimes: readonly Date[];
  /** Number of times that were dropped because they were later than the catch-up window. */
  readonly missed: number;
}

export type Ensured = 'there' | 'made' | 'changed';

/**
 * Creates the Schedule, or changes the existing one if it differs. `catchUpFrom`: when it has to be created, the times
 * since then are started too, as far as the catch-up window reaches.
 */
export async function ensureSchedule(
  client: Client,
  wanted: WantedSchedule,
  catchUp?: { readonly from: Date; readonly now: Date },
): Promise<Ensured> {
  const digest = digestOf(JSON.parse(JSON.stringify(wanted)));
  const found = await describe(client, wanted.id);
  if (found === undefined) {
    if (await create(client, wanted, digest, catchUp)) return 'made';
    return ensureSchedule(client, wanted, catchUp); // another process has just created it
  }
  if (found.action.memo?.[memoName] === digest && found.state.paused === wanted.paused) return 'there';
  await client.schedule.getHandle(wanted.id).update(() => ({ ...bodyOf(wanted, digest), state: stateOf(wanted) }));
  return 'changed';
}

/** undefined when it does not exist. */
export async function describeSchedule(client: Client, id: string): Promise<LiveSchedule | undefined> {
  const found = await describe(client, id);
  return (
    found && {
      paused: found.state.paused,
      nextTimes: found.info.nextActionTimes,
      missed: found.info.numActionsMissedCatchupWindow,
    }
  );
}

/** Workflows that it has started continue. False when it did not exist. */
export async function removeSchedule(client: Client, id: string): Promise<boolean> {
  try {
    await client.schedule.getHandle(id).delete();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
}

/** The id that Temporal gives the workflow of an action: the time is cut to the second. */
export function actionWorkflowId(workflowId: string, time: Date): string {
  return `${workflowId}-${time.toISOString().slice(0, 19)}Z`;
}

/** A Schedule's memo cannot be changed, but its action's memo can. */
const memoName = 'petrel-schedule';

async function create(
  client: Client,
  wanted: WantedSchedule,
  digest: string,
  catchUp: { readonly from: Date; readonly now: Date } | undefined,
): Promise<boolean> {
  try {
    await client.schedule.create({
      scheduleId: wanted.id,
      ...bodyOf(wanted, digest),
      state: { ...stateOf(wanted), backfill: missedBy(wanted, catchUp) },
    });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

function missedBy(
  { catchUpMs, paused }: WantedSchedule,
  catchUp: { readonly from: Date; readonly now: Date } | undefined,
): Backfill[] {
  if (catchUp === undefined || paused) return [];
  const start = new Date(Math.max(catchUp.from.getTime(), catchUp.now.getTime() - catchUpMs));
  return start < catchUp.now ? [{ start, end: catchUp.now, overlap: 'ALLOW_ALL' }] : [];
}

function bodyOf(
  { times, jitterMs, until, catchUpMs, overlap, action }: WantedSchedule,
  digest: string,
): Pick<ScheduleOptions, 'spec' | 'policies' | 'action'> {
  return {
    spec: {
      ...specOf(times),
      ...(jitterMs === undefined ? {} : { jitter: jitterMs }),
      ...(until === undefined ? {} : { endAt: until }),
    },
    policies: { catchupWindow: catchUpMs, overlap: overlap === 'all' ? 'ALLOW_ALL' : 'SKIP' },
    action: {
      type: 'startWorkflow',
      workflowType: action.workflow,
      workflowId: action.workflowId,
      taskQueue,
      args: [...action.args],
      memo: { [memoName]: digest },
      workflowTaskTimeout: '2 s',
    },
  };
}

function stateOf({ paused, note }: WantedSchedule): { paused: boolean; note?: string } {
  return { paused, ...(note === undefined ? {} : { note }) };
}

/** Cron fields as numbers, so that the server and timesAfter cannot read them differently. */
function specOf(times: ScheduleTimes): ScheduleSpec {
  if (times.type === 'every') return { intervals: [{ every: times.everyMs }] };
  const { minutes, hours, daysOfMonth, months, daysOfWeek } = parseCron(times.cron);
  const calendar: CalendarSpec = {
    minute: [...minutes],
    hour: [...hours],
    dayOfMonth: [...daysOfMonth],
    month: months.map((month) => at(monthNames, month - 1)),
    dayOfWeek: daysOfWeek.map((day) => at(dayNames, day)),
  };
  return { calendars: [calendar], timezone: times.timezone };
}

const monthNames = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const;
const dayNames = ['SUNDAY', 'MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY'] as const;

async function describe(client: Client, id: string): Promise<ScheduleDescription | undefined> {
  try {
    return await client.schedule.getHandle(id).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}
