/** `petrel fleet scale POOL COUNT`. */
import { scaleFleet } from '../../../api/index.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { CommandContext, CommandInput } from '../../command.ts';

export async function run(
  { words: [pool = '', text = ''] }: CommandInput,
  context: CommandContext,
): Promise<undefined> {
  const count = text === 'auto' ? 'auto' : Number(text);
  if (count !== 'auto' && !(Number.isInteger(count) && count >= 0 && text !== ''))
    throw new InvalidInputError(`expected a number of instances, or auto for the planner's, got ${text}`, {
      hint: `petrel fleet scale ${pool} 4`,
    });
  const record = await scaleFleet(context, pool, count);
  context.printer.data(record, () =>
    count === 'auto' ? `${pool} has as many instances as the planner says` : `${pool} gets ${count} instances`,
  );
  return undefined;
}
