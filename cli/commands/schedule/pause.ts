/** `petrel schedule pause <name>`. */
import { pauseSchedule } from '../../../api/schedules/change.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption, word } from '../../options.ts';
import { findSchedule } from '../../../api/schedules/find.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const found = await findSchedule(word(input, 0), context);
  const { name } = found.log;
  const note = textOption(input, 'note');
  await pauseSchedule(found, note, context);
  context.printer.data(
    { name, state: 'paused', note: note ?? null },
    () => `schedule ${name} is paused\nnext: petrel schedule unpause ${name}`,
  );
  return undefined;
}
