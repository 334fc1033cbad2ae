/** Finds the records of a schedule by its name, in every store that this machine has used. */
import { TerminalError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import type { ScheduleRecord } from '../../core/records/schema.ts';
import { listScheduleNames, ScheduleLog } from '../../log/schedules/schedule-log.ts';
import type { ApiContext } from '../context.ts';
import { openKnownStores } from '../stores/find.ts';

export interface FoundSchedule {
  readonly log: ScheduleLog;
  readonly record: ScheduleRecord;
}

/** Lists the schedules that were not removed, by name. */
export async function listSchedules(context: ApiContext): Promise<FoundSchedule[]> {
  return present(await allSchedules(context));
}

/** Throws TerminalError `NotFound` with the nearest name. */
export async function findSchedule(name: string, context: ApiContext): Promise<FoundSchedule> {
  const all = await allSchedules(context);
  const found = present(all).find(({ log }) => log.name === name);
  if (found !== undefined) return found;
  const removed = all.find(({ log }) => log.name === name);
  if (removed !== undefined)
    throw new TerminalError('NotFound', `the schedule ${name} was removed on ${removed.record.at.slice(0, 10)}`, {
      hint: 'petrel schedule ls lists the schedules',
    });
  const names = present(all).map(({ log }) => log.name);
  const meant = nearest(name, names);
  const hint =
    meant !== undefined
      ? `did you mean ${meant}?`
      : names.length === 0
        ? 'there is none yet: petrel schedule add --help'
        : 'petrel schedule ls lists them';
  throw new TerminalError('NotFound', `there is no schedule ${name}`, { hint });
}

async function allSchedules({ home, notice }: ApiContext): Promise<FoundSchedule[]> {
  const found: FoundSchedule[] = [];
  for (const store of await openKnownStores(home, notice)) {
    for (const name of await listScheduleNames(store)) {
      const log = new ScheduleLog(store, name);
      const record = await log.record();
      if (record !== undefined) found.push({ log, record });
    }
  }
  return found.sort((a, b) => (a.log.name < b.log.name ? -1 : 1));
}

function present(schedules: readonly FoundSchedule[]): FoundSchedule[] {
  return schedules.filter(({ record }) => record.state !== 'removed');
}
