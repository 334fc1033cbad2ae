import { explain, type RecipeKey, recipeKeys, showValue } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import type { Printer } from '../printer/printer.ts';
import { renderFields, renderTable, widthFor } from '../printer/table.ts';
import type { Column } from '../printer/table.ts';
import type { Terminal } from '../printer/terminal.ts';
import { displayWidth } from '../printer/width.ts';
import { wrapText } from '../printer/wrap.ts';

const CHANGE_TEXT = {
  free: 'free: takes effect',
  ask: 'ask: changes the experiment, needs --accept',
  fixed: 'fixed: would be another run',
} as const;

/** `petrel recipe explain [key]`. */
export async function run(input: CommandInput, { printer }: CommandContext): Promise<undefined> {
  const [path] = input.words;
  if (path === undefined) {
    printer.data(recipeKeys, () => keyTable(recipeKeys, printer));
    return undefined;
  }
  const found = explain(path);
  if (found.type === 'key') printer.data(found.key, () => keyText(found.key, printer));
  else printer.data(found.keys, () => `${found.section.doc}\n\n${sectionText(found.keys, printer.stdout)}`);
  return undefined;
}

function keyText(key: RecipeKey, printer: Printer): string {
  return renderFields(
    [
      [key.path, key.doc],
      ['type', key.type],
      ['unit', key.unit],
      ['default', defaultText(key)],
      ['sft', key.sftDefault === undefined ? undefined : `${showValue(key.sftDefault)} with kind: sft, dpo and rm`],
      ['resume', CHANGE_TEXT[key.change]],
      ['verl', key.verl],
    ],
    printer.stdout,
  );
}

/** A table; on a terminal that is too narrow for it each key with its doc below. */
export function sectionText(keys: readonly RecipeKey[], terminal: Terminal): string {
  const columns = keyColumns.map(({ shrink: _, ...column }) => column);
  const table = renderTable(keys, columns);
  const width = widthFor(terminal);
  if (width === undefined || table.split('\n').every((line) => displayWidth(line) <= width)) return table;
  return keys
    .map((key) => `${wrapText(headText(key), width, '')}\n${wrapText(docText(key), width, '    ')}`)
    .join('\n');
}

const headText = (key: RecipeKey): string => `${key.path}: ${defaultText(key)} (${key.change})`;

function keyTable(keys: readonly RecipeKey[], printer: Printer): string {
  return renderTable(keys, keyColumns, widthFor(printer.stdout));
}

const docText = ({ doc, unit }: RecipeKey): string => (unit === undefined ? doc : `${doc} [${unit}]`);

const keyColumns: readonly Column<RecipeKey>[] = [
  { head: 'key', value: ({ path }) => path },
  { head: 'default', value: (key) => defaultText(key) },
  { head: 'resume', value: ({ change }) => change },
  { head: 'what it is', value: docText, shrink: true },
];

function defaultText(key: RecipeKey): string {
  return key.required ? 'required' : showValue(key.default);
}
