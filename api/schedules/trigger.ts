/** Firing a schedule now, beside its times. */
import { RetryableError, TerminalError } from '../../core/errors.ts';
import type { FiringRecord } from '../../core/records/schema.ts';
import { isOf, isoSeconds } from '../../core/schedules/decide.ts';
import { reconcileSchedule, startFiring } from '../../infra/temporal/reconcile-schedule.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';
import { chooseStack, claimName } from '../../infra/stack/index.ts';
import { poll } from '../../infra/poll.ts';
import type { ApiContext } from '../context.ts';
import type { FoundSchedule } from './find.ts';
import { withTemporalUp } from './temporal.ts';

const decidedMs = 30_000;

/**
 * Resolves with what the schedule decided for this moment: a run, or a wait. Throws TerminalError `Conflict` when
 * another stack fires it, RetryableError `NotDecided` when the control process is away.
 */
export async function triggerSchedule({ log, record }: FoundSchedule, context: ApiContext): Promise<FiringRecord> {
  await chooseStack(context.home);
  await claimName(context.home, log.store);
  return withTemporalUp(context, async (ports) => {
    if ((await reconcileSchedule(ports, log, new Date())) === 'others') {
      throw new TerminalError('Conflict', `${log.name} belongs to another stack, ${record.owner}`, {
        hint: `petrel schedule unpause ${log.name} takes it over`,
      });
    }
    const wanted = { generation: record.generation, time: isoSeconds(new Date()), triggered: true };
    await startFiring(ports.client, log, wanted);
    return decided(log, wanted);
  });
}

async function decided(
  log: ScheduleLog,
  wanted: { readonly generation: number; readonly time: string },
): Promise<FiringRecord> {
  const found = await poll(async () => (await log.view()).firings.find((one) => isOf(one, wanted)), {
    everyMs: 100,
    timeoutMs: decidedMs,
  });
  if (found !== undefined) return found;
  throw new RetryableError(
    'NotDecided',
    `the control process has not taken up ${log.name} within ${decidedMs / 1000} s; it will when it is back`,
    { hint: `petrel schedule show ${log.name}` },
  );
}
