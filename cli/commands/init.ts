/** `petrel init [folder]`: writes a commented recipe and what it needs. Never overwrites. */
import { relative } from 'node:path';
import { initRecipe } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { textOption } from '../options.ts';

export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const folder = input.words[0] ?? '.';
  const files = await initRecipe(
    {
      folder,
      data: textOption(input, 'data'),
      model: textOption(input, 'model'),
      reward: textOption(input, 'reward'),
    },
    cwd,
  );
  printer.data({ files }, () => files.map((file) => `wrote ${relative(cwd, file)}`).join('\n'));
  if (!printer.json) printer.notice(`\nnext: petrel plan ${folder}`);
  return undefined;
}
