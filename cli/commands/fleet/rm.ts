/** `petrel fleet rm POOL`. */
import { removePool } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';

export async function run({ words: [pool = ''] }: CommandInput, context: CommandContext): Promise<undefined> {
  const record = await removePool(context, pool);
  context.printer.data(record, () => `removed ${pool}; its instances leave when their jobs have ended`);
  return undefined;
}
