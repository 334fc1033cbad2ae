/** `petrel schedule unpause <name>`: from now on this stack fires it. */
import type { CommandContext, CommandInput } from '../../command.ts';
import { word } from '../../options.ts';
import { findSchedule, unpauseSchedule } from '../../../api/index.ts';
import { showTime } from '../../schedules/schedules-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const found = await findSchedule(word(input, 0), context);
  const { name } = found.log;
  const { summary, live } = await unpauseSchedule(found, context);
  const { state, nextTimes } = summary;
  printer.data(
    { name, state, nextTimes },
    () => `schedule ${name} is active; its next run starts at ${showTime(nextTimes[0] ?? '')}`,
  );
  if (!printer.json && !live) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
