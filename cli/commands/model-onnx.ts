/** `petrel model onnx <folder>`: a reward model of transformers as ONNX. */
import { resolve } from 'node:path';
import { exportOnnx } from '../../api/index.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { showBytes, showNumber } from '../../core/quantities.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { textOption, word } from '../options.ts';

export async function run(input: CommandInput, { printer, cwd, env }: CommandContext): Promise<undefined> {
  const out = textOption(input, 'out');
  if (out === undefined) throw new InvalidInputError('--out: expected a folder');
  const made = await exportOnnx(resolve(cwd, word(input, 0)), resolve(cwd, out), env['PETREL_PYTHON'] ?? 'python3');
  printer.data(
    { folder: resolve(cwd, out), ...made },
    () =>
      `${out}: ${made.class}, ${showBytes(made.bytes)}; ${made.sequences} scores differ from transformers by at most ${showNumber(made.difference)}`,
  );
  return undefined;
}
