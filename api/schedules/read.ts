/** Reads what schedules have started and will start: from the stores, and while the stack is up from Temporal. */
import { stackName } from '../../infra/stack/index.ts';
import type { ApiContext } from '../context.ts';
import type { FoundSchedule } from './find.ts';
import { scheduleSummary } from './summary.ts';
import type { ScheduleSummary } from './summary.ts';
import { liveSchedule, withTemporal } from './temporal.ts';

interface StackState {
  /** False: the local stack is down, so nothing starts until it is up. */
  readonly stackIsUp: boolean;
}

/** Reads one schedule with its `limit` newest firings. */
export async function readSchedule(
  found: FoundSchedule,
  { home }: Pick<ApiContext, 'home'>,
  limit: number,
): Promise<{ readonly summary: ScheduleSummary } & StackState> {
  const live = await withTemporal(home, async (ports) => ({ schedule: await liveSchedule(ports, found.log) }));
  const summary = await scheduleSummary(found, live?.schedule, { stack: stackName(home), now: new Date(), limit });
  return { summary, stackIsUp: live !== undefined };
}

/** Reads schedules, each with its `limit` newest firings, in their order. */
export async function readSchedules(
  found: readonly FoundSchedule[],
  { home }: Pick<ApiContext, 'home'>,
  limit: number,
): Promise<{ readonly summaries: readonly ScheduleSummary[] } & StackState> {
  const stack = stackName(home);
  const live =
    found.length === 0
      ? undefined
      : await withTemporal(home, (ports) => Promise.all(found.map(({ log }) => liveSchedule(ports, log))));
  const summaries = await Promise.all(
    found.map((one, index) => scheduleSummary(one, live?.[index], { stack, now: new Date(), limit })),
  );
  return { summaries, stackIsUp: live !== undefined };
}
