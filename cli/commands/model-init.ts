/** `petrel model init <folder>`: random weights for the config.json and tokenizer that lie in a folder. */
import { join, resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { readDecoderConfig } from '../../models/config.ts';
import { initialTensors } from '../../models/init.ts';
import { readConfigJson, saveHuggingFace } from '../../models/weights.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { integerOption, textOption, word } from '../options.ts';

export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const from = resolve(cwd, word(input, 0));
  const out = textOption(input, 'out');
  if (out === undefined) throw new InvalidInputError('--out: expected a folder');
  const json = await readConfigJson(from);
  const config = readDecoderConfig(json, join(from, 'config.json'));
  const std = typeof json['initializer_range'] === 'number' ? json['initializer_range'] : 0.02;
  const tensors = initialTensors(config, integerOption(input, 'seed', 0) ?? 0, std);
  await saveHuggingFace(resolve(cwd, out), { config: json, tensors, dtype: 'float32', companions: from });
  const parameters = tensors.reduce((sum, tensor) => sum + tensor.data.length, 0);
  printer.data(
    { folder: out, parameters },
    () => `${out}: ${config.family}, ${config.layers} layers, ${parameters} parameters`,
  );
  return undefined;
}
