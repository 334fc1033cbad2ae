/**
 * `petrel recipe import <file> [overrides...]`. The recipe goes to --out or stdout; the report goes to stdout or
 * stderr.
 */
import { resolve } from 'node:path';
import { importRecipe, isImportOverride, measureImports, writeNewFile } from '../../api/index.ts';
import type { ImportInputs } from '../../api/index.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, listOption, textOption } from '../options.ts';
import { widthFor } from '../printer/table.ts';
import { importText, measureText } from '../recipes/import-text.ts';

export async function run(input: CommandInput, { printer, cwd }: CommandContext): Promise<undefined> {
  const isFile = (text: string) => !/[=]/.test(text) && !text.startsWith('~');
  const files = input.words.filter(isFile);
  const inputs: ImportInputs = {
    env: variablesOf(listOption(input, 'env')),
    args: listOption(input, 'args'),
    words: input.words.filter((text) => !isFile(text)),
    call: integerOption(input, 'call', 1),
    engine: textOption(input, 'engine') as ImportInputs['engine'],
  };
  checkWords(files, inputs.words, flag(input, 'dryRun'));
  if (flag(input, 'dryRun')) {
    const measure = measureImports(files, inputs, cwd);
    printer.data(measure, () => measureText(measure, widthFor(printer.stdout)));
    return undefined;
  }
  const imported = importRecipe(files[0] ?? '', inputs, cwd);
  const out = textOption(input, 'out');
  if (out !== undefined) writeNewFile(resolve(cwd, out), imported.text);
  const report = () => importText(imported);
  printer.data(out === undefined ? imported : { file: resolve(cwd, out), ...imported }, () =>
    out === undefined ? imported.text : report(),
  );
  if (printer.json) return undefined;
  printer.notice(out === undefined ? `\n${report()}` : `\nwrote ${out}\nnext: petrel plan ${out}`);
  return undefined;
}

function checkWords(files: readonly string[], words: readonly string[], isDryRun: boolean): void {
  const wrong = words.find((text) => !isImportOverride(text));
  if (wrong !== undefined)
    throw new InvalidInputError(`expected an override such as trainer.total_epochs=2, got ${wrong}`);
  if (files.length === 0) throw new InvalidInputError('expected a file to import');
  if (files.length > 1 && !isDryRun)
    throw new InvalidInputError(`expected one file, got ${files.join(', ')}`, {
      hint: 'several files are read with --dry-run; an override has a "="',
    });
}

function variablesOf(list: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    list.map((text) => {
      const match = /^([A-Za-z_]\w*)=(.*)$/s.exec(text);
      if (match === null) throw new InvalidInputError(`--env: expected NAME=value, got ${text}`);
      return [match[1] ?? '', match[2] ?? ''];
    }),
  );
}
