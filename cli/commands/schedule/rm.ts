/** `petrel schedule rm <name>`: no more runs; those there are stay. */
import { findSchedule, removeSchedule } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { confirmed } from '../../confirm.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { word } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const found = await findSchedule(word(input, 0), context);
  const { name } = found.log;
  if (!(await confirmed(`Remove the schedule ${name}? Its runs stay.`, input, context))) {
    printer.notice('nothing was removed');
    return EXIT.interrupted;
  }
  const active = await removeSchedule(found, context);
  const going = active.length === 0 ? '' : `; ${active.join(', ')} ${active.length === 1 ? 'goes' : 'go'} on`;
  printer.data({ name, removed: true, active }, () => `removed the schedule ${name}${going}`);
  return EXIT.ok;
}
