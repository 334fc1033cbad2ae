/** `petrel schedule ls`: all schedules, from the stores; with the stack up, as Temporal will fire them. */
import { stackName } from '../../../api/stack.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { listSchedules } from '../../../api/schedules/find.ts';
import { liveSchedule, withTemporal } from '../../../api/schedules/temporal.ts';
import { scheduleSummary } from '../../../api/schedules/summary.ts';
import { scheduleTable } from '../../schedules/schedules-text.ts';

/** The last runs are looked for among this many newest times. */
const looked = 20;

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const { home } = context;
  const found = await listSchedules(context);
  const stack = stackName(home);
  const live =
    found.length === 0
      ? undefined
      : await withTemporal(home, (ports) => Promise.all(found.map(({ log }) => liveSchedule(ports, log))));
  const summaries = await Promise.all(
    found.map((one, index) => scheduleSummary(one, live?.[index], { stack, now: new Date(), limit: looked })),
  );
  printer.data(summaries, () => (summaries.length === 0 ? 'no schedules' : scheduleTable(summaries, printer)));
  if (printer.json) return undefined;
  if (summaries.length === 0) printer.notice('petrel schedule add <recipe> --every 6h creates one');
  else if (live === undefined) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
