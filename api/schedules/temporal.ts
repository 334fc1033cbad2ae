/** The Temporal side of schedules, for commands: made as the store says whenever the stack is up. */
import { reconcileSchedule, temporalScheduleId } from '../../infra/temporal/reconcile-schedule.ts';
import type { ReconcilePorts } from '../../infra/temporal/reconcile-schedule.ts';
import { stackName } from '../../infra/stack/identity.ts';
import { ensureStack, readStack } from '../../infra/stack/index.ts';
import type { StackInfo, WorkerPool } from '../../infra/stack/index.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';
import type { LiveSchedule } from '../../infra/temporal/schedules.ts';
import type { ApiContext } from '../context.ts';

/** Calls `use` with the stack's Temporal; undefined when the stack is down. */
export async function withTemporal<T>(
  home: string,
  use: (ports: ReconcilePorts) => Promise<T>,
): Promise<T | undefined> {
  const stack = readStack(home);
  return stack && connected(home, stack, use);
}

/** Brings the stack up when it is down. */
export async function withTemporalUp<T>(
  { home, notice }: ApiContext,
  use: (ports: ReconcilePorts) => Promise<T>,
  workers?: readonly WorkerPool[],
): Promise<T> {
  return connected(home, await ensureStack({ home, onProgress: notice, ...(workers && { workers }) }), use);
}

/** Reconciles the Temporal Schedule first; undefined for one that another stack fires. */
export async function liveSchedule(ports: ReconcilePorts, log: ScheduleLog): Promise<LiveSchedule | undefined> {
  const { describeSchedule } = await import('../../infra/temporal/schedules.ts');
  const tended = await reconcileSchedule(ports, log, new Date());
  return tended === 'others' || tended === 'removed'
    ? undefined
    : describeSchedule(ports.client, temporalScheduleId(log));
}

async function connected<T>(home: string, stack: StackInfo, use: (ports: ReconcilePorts) => Promise<T>): Promise<T> {
  const { connectTemporalClient } = await import('../../infra/temporal/connection.ts');
  const client = await connectTemporalClient(stack);
  try {
    return await use({ client, stack: stackName(home) });
  } finally {
    await client.connection.close();
  }
}
