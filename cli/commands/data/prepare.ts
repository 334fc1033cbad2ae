import { resolve } from 'node:path';
import { PREPARED_DATASETS, prepareRows, writeRows } from '../../../api/index.ts';
import type { PreparedSplit } from '../../../api/index.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import { counted, showBytes } from '../../../core/quantities.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption, word } from '../../options.ts';

/** `petrel data prepare`. */
export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const preparation = PREPARED_DATASETS.find((name) => name === word(input, 0));
  if (preparation === undefined)
    throw new InvalidInputError(`expected ${PREPARED_DATASETS.join(' or ')}, got ${word(input, 0)}`);
  const out = textOption(input, 'out') ?? 'rows.jsonl';
  if (!/\.(jsonl|ndjson)$/i.test(out))
    throw new InvalidInputError(`--out ${out}: expected a name that ends with .jsonl`);
  const paths = input.words.slice(1).map((path) => resolve(cwd, path));
  const rows = await prepareRows(preparation, paths, (textOption(input, 'split') ?? 'train') as PreparedSplit);
  const bytes = writeRows(resolve(cwd, out), rows);
  printer.data(
    { file: resolve(cwd, out), rows: rows.length, bytes },
    () => `${out}: ${counted(rows.length, 'row')}, ${showBytes(bytes)}`,
  );
  return undefined;
}
