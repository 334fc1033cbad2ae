/** `petrel schedule ls`: all schedules, from the stores; with the stack up, as Temporal will fire them. */
import { listSchedules, readSchedules } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { scheduleTable } from '../../schedules/schedules-text.ts';

/** The last runs are looked for among this many newest times. */
const looked = 20;

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const { summaries, stackIsUp } = await readSchedules(await listSchedules(context), context, looked);
  printer.data(summaries, () => (summaries.length === 0 ? 'no schedules' : scheduleTable(summaries, printer)));
  if (printer.json) return undefined;
  if (summaries.length === 0) printer.notice('petrel schedule add <recipe> --every 6h creates one');
  else if (!stackIsUp) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
