/** `petrel schedule show <name>`. */
import { findSchedule, readSchedule } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { integerOption, word } from '../../options.ts';
import { scheduleText } from '../../schedules/schedules-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const limit = integerOption(input, 'limit', 0) ?? 10;
  const found = await findSchedule(word(input, 0), context);
  const { summary, stackIsUp } = await readSchedule(found, context, limit);
  printer.data(summary, () => scheduleText(summary, printer));
  if (!printer.json && !stackIsUp) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
