/** `petrel fleet drain INSTANCE`. */
import { drainInstance } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';

export async function run({ words: [id = ''] }: CommandInput, context: CommandContext): Promise<undefined> {
  const record = await drainInstance(context, id);
  context.printer.data(record, () => `${id} leaves when its jobs have ended, after two minutes at most`);
  return undefined;
}
