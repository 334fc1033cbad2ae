/** `petrel model init <folder>`: random weights for the config.json and tokenizer that lie in a folder. */
import { resolve } from 'node:path';
import { initModel } from '../../api/index.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { integerOption, textOption, word } from '../options.ts';

export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const out = textOption(input, 'out');
  if (out === undefined) throw new InvalidInputError('--out: expected a folder');
  const seed = integerOption(input, 'seed', 0) ?? 0;
  const { family, layers, parameters } = await initModel(resolve(cwd, word(input, 0)), resolve(cwd, out), seed);
  printer.data({ folder: out, parameters }, () => `${out}: ${family}, ${layers} layers, ${parameters} parameters`);
  return undefined;
}
