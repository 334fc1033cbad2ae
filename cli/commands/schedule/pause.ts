/** `petrel schedule pause <name>`. */
import { findSchedule, pauseSchedule } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption, word } from '../../options.ts';

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
