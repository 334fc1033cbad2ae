/** `petrel schedule show <name>`. */
import { petrelHome } from '../../../infra/home.ts';
import { stackName } from '../../../infra/stack/identity.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { integerOption, word } from '../../options.ts';
import { findSchedule } from '../../schedules/find.ts';
import { liveSchedule, withTemporal } from '../../schedules/live.ts';
import { scheduleSummary } from '../../schedules/summary.ts';
import { scheduleText } from '../../schedules/text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env } = context;
  const home = petrelHome(env);
  const limit = integerOption(input, 'limit', 0) ?? 10;
  const found = await findSchedule(word(input, 0), context);
  const live = await withTemporal(home, async (ports) => ({ schedule: await liveSchedule(ports, found.log) }));
  const summary = await scheduleSummary(found, live?.schedule, { stack: stackName(home), now: new Date(), limit });
  printer.data(summary, () => scheduleText(summary, printer));
  if (!printer.json && live === undefined) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
