/** `petrel schedule trigger <name>`: a time of its own, now. */
import { RetryableError, TerminalError } from '../../../core/errors.ts';
import type { FiringRecord } from '../../../core/records/schema.ts';
import { isOf, isoSeconds } from '../../../core/schedules/decide.ts';
import { petrelHome } from '../../../infra/home.ts';
import { startFiring, tendSchedule } from '../../../infra/schedules/tend.ts';
import type { ScheduleLog } from '../../../infra/store/schedule-log.ts';
import { poll } from '../../../infra/wait.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { word } from '../../options.ts';
import { findSchedule } from '../../schedules/find.ts';
import { withTemporalUp } from '../../schedules/live.ts';

const decidedMs = 30_000;

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env } = context;
  const { log, record } = await findSchedule(word(input, 0), context);
  const firing = await withTemporalUp(petrelHome(env), printer, async (ports) => {
    if ((await tendSchedule(ports, log, new Date())) === 'others') {
      throw new TerminalError('Conflict', `${log.name} is fired by ${record.owner}, another stack`, {
        hint: `petrel schedule unpause ${log.name} takes it over`,
      });
    }
    const wanted = { generation: record.generation, time: isoSeconds(new Date()), triggered: true };
    await startFiring(ports.client, log, wanted);
    return decided(log, wanted);
  });
  const { time, outcome, runId, why, by } = firing;
  if (outcome === 'skipped' || outcome === 'failed') throw refused(log.name, firing);
  printer.data({ name: log.name, time, outcome, runId: runId ?? null, by: by ?? [] }, () =>
    runId === undefined
      ? `${log.name} waits: ${why ?? ''}; petrel schedule show ${log.name}`
      : `run ${runId}\nnext: petrel status ${runId} --watch`,
  );
  return undefined;
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

function refused(name: string, { outcome, why }: FiringRecord): TerminalError {
  const hint = `petrel schedule show ${name} tells what blocks; petrel resume or petrel cancel ends that`;
  return new TerminalError('Conflict', `no run was started: ${why ?? outcome}`, outcome === 'skipped' ? { hint } : {});
}
