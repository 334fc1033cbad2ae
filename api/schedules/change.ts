/** Pausing, resuming and removing a schedule. The records come first; Temporal is told when the stack is up. */
import { chooseStack, claimName, stackName } from '../../infra/stack/index.ts';
import { changeSchedule } from '../../log/schedules/schedule-log.ts';
import type { ApiContext } from '../context.ts';
import type { FoundSchedule } from './find.ts';
import { liveSchedule, withTemporal } from './temporal.ts';
import { scheduleSummary } from './summary.ts';
import type { ScheduleSummary } from './summary.ts';

/** It starts no run until it is unpaused. `note`: why, for people. */
export async function pauseSchedule(
  { log, record }: FoundSchedule,
  note: string | undefined,
  { home }: Pick<ApiContext, 'home'>,
): Promise<void> {
  await changeSchedule(
    log,
    (last) =>
      last?.state === 'paused' && note === undefined
        ? undefined
        : { state: 'paused', owner: last?.owner ?? record.owner, ...(note === undefined ? {} : { note }) },
    new Date(),
  );
  await withTemporal(home, (ports) => liveSchedule(ports, log));
}

export interface Unpaused {
  readonly summary: ScheduleSummary;
  /** False: the stack is down, and nothing starts until it is up. */
  readonly live: boolean;
}

/** Resumes a schedule; this machine's stack fires it from now on. */
export async function unpauseSchedule({ log }: FoundSchedule, { home }: Pick<ApiContext, 'home'>): Promise<Unpaused> {
  await chooseStack(home);
  await claimName(home, log.store);
  const stack = stackName(home);
  const record = await changeSchedule(
    log,
    (last) => (last?.state === 'active' && last.owner === stack ? undefined : { state: 'active', owner: stack }),
    new Date(),
  );
  const live = await withTemporal(home, async (ports) => ({ schedule: await liveSchedule(ports, log) }));
  const summary = await scheduleSummary({ log, record }, live?.schedule, { stack, now: new Date(), limit: 0 });
  return { summary, live: live !== undefined };
}

/** Removes a schedule; its runs stay. Resolves with the ids of those that have not ended. */
export async function removeSchedule(
  { log, record }: FoundSchedule,
  { home }: Pick<ApiContext, 'home'>,
): Promise<readonly string[]> {
  const { active } = await log.view();
  await changeSchedule(
    log,
    (last) => (last?.state === 'removed' ? undefined : { state: 'removed', owner: last?.owner ?? record.owner }),
    new Date(),
  );
  await withTemporal(home, (ports) => liveSchedule(ports, log));
  return active;
}
