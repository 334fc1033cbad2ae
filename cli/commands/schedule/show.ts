/** `petrel schedule show <name>`. */
import { stackName } from '../../../api/stack.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { integerOption, word } from '../../options.ts';
import { findSchedule } from '../../../api/schedules/find.ts';
import { liveSchedule, withTemporal } from '../../../api/schedules/temporal.ts';
import { scheduleSummary } from '../../../api/schedules/summary.ts';
import { scheduleText } from '../../schedules/schedules-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const { home } = context;
  const limit = integerOption(input, 'limit', 0) ?? 10;
  const found = await findSchedule(word(input, 0), context);
  const live = await withTemporal(home, async (ports) => ({ schedule: await liveSchedule(ports, found.log) }));
  const summary = await scheduleSummary(found, live?.schedule, { stack: stackName(home), now: new Date(), limit });
  printer.data(summary, () => scheduleText(summary, printer));
  if (!printer.json && live === undefined) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
