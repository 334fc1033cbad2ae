import { resolve } from 'node:path';
import type { CommandContext, CommandInput } from '../../command.ts';
import { arithmeticRows, readRowPrompts, writeRows } from '../../../api/index.ts';
import type { ArithmeticPreset, ArithmeticSplit } from '../../../api/index.ts';
import { flag, integerOption, listOption, textOption } from '../../options.ts';
import { counted, showBytes } from '../../../core/quantities.ts';

/** `petrel data arithmetic`. */
export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const out = textOption(input, 'out') ?? 'rows.jsonl';
  const excluded = listOption(input, 'exclude');
  const rows = arithmeticRows({
    rows: integerOption(input, 'rows', 1, 10_000_000) ?? 1,
    seed: integerOption(input, 'seed', 0) ?? 1,
    digits: integerOption(input, 'digits', 1, 4) ?? 2,
    split: (textOption(input, 'split') ?? 'train') as ArithmeticSplit,
    preset: (textOption(input, 'preset') ?? 'question') as ArithmeticPreset,
    sft: flag(input, 'sft'),
    careless: integerOption(input, 'careless', 0, 100) ?? 0,
    dataSource: textOption(input, 'dataSource') ?? 'arithmetic',
    exclude: new Set((await Promise.all(excluded.map((file) => readRowPrompts(resolve(cwd, file))))).flat()),
  });
  const bytes = writeRows(resolve(cwd, out), rows);
  printer.data(
    { file: resolve(cwd, out), rows: rows.length, bytes },
    () => `${out}: ${counted(rows.length, 'row')}, ${showBytes(bytes)}`,
  );
  return undefined;
}
