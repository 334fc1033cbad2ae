/** `petrel schedule trigger <name>`: a time of its own, now. */
import { findSchedule, triggerSchedule } from '../../../api/index.ts';
import { TerminalError } from '../../../core/errors.ts';
import type { FiringRecord } from '../../../core/records/schema.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { word } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const found = await findSchedule(word(input, 0), context);
  const { name } = found.log;
  const firing = await triggerSchedule(found, context);
  const { time, outcome, runId, why, by } = firing;
  if (outcome === 'skipped' || outcome === 'failed') throw refused(name, firing);
  printer.data({ name, time, outcome, runId: runId ?? null, by: by ?? [] }, () =>
    runId === undefined
      ? `${name} waits: ${why ?? ''}; petrel schedule show ${name}`
      : `run ${runId}\nnext: petrel status ${runId} --watch`,
  );
  return undefined;
}

function refused(name: string, { outcome, why }: FiringRecord): TerminalError {
  const hint = `petrel schedule show ${name} tells what blocks; petrel resume or petrel cancel ends that`;
  return new TerminalError('Conflict', `no run was started: ${why ?? outcome}`, outcome === 'skipped' ? { hint } : {});
}
