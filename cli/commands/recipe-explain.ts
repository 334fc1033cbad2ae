import { explain, type RecipeKey, recipeKeys, showValue } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import type { Printer } from '../printer/printer.ts';
import { renderFields, renderTable, widthFor } from '../printer/table.ts';

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
  if (found.type === 'key') printer.data(found.key, () => keyText(found.key));
  else printer.data(found.keys, () => `${found.section.doc}\n\n${keyTable(found.keys, printer)}`);
  return undefined;
}

function keyText(key: RecipeKey): string {
  return renderFields([
    [key.path, key.doc],
    ['type', key.type],
    ['unit', key.unit],
    ['default', defaultText(key)],
    ['sft', key.sftDefault === undefined ? undefined : `${showValue(key.sftDefault)} with kind: sft`],
    ['resume', CHANGE_TEXT[key.change]],
    ['verl', key.verl],
  ]);
}

function keyTable(keys: readonly RecipeKey[], printer: Printer): string {
  const columns = [
    { head: 'key', value: (key: RecipeKey) => key.path },
    { head: 'default', value: (key: RecipeKey) => defaultText(key) },
    { head: 'resume', value: (key: RecipeKey) => key.change },
    {
      head: 'what it is',
      value: (key: RecipeKey) => (key.unit === undefined ? key.doc : `${key.doc} [${key.unit}]`),
      shrink: true,
    },
  ];
  return renderTable(keys, columns, widthFor(printer.stdout));
}

function defaultText(key: RecipeKey): string {
  return key.required ? 'required' : showValue(key.default);
}
