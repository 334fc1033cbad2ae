/** `petrel fleet apply FILE`. */
import { resolve } from 'node:path';
import { applyFleet } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const [file = ''] = input.words;
  const record = await applyFleet(context, {
    path: resolve(context.cwd, file),
    where: file,
    store: textOption(input, 'store'),
  });
  const pools = Object.keys(record.spec.pools);
  context.printer.data(
    record,
    () => `applied ${file} as revision ${record.n}: ${pools.length === 0 ? 'no pools' : `pools ${pools.join(', ')}`}`,
  );
  context.printer.notice('petrel fleet ls shows what is bought, petrel fleet explain why');
  return undefined;
}
