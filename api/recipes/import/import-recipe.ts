/** `petrel recipe import`: a recipe from a file of verl's, with a report of what became of each key. */
import { readFileSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { InvalidInputError, TerminalError } from '../../../core/errors.ts';
import { importEntries } from './keys/map-entries.ts';
import { type ImportResult, MAPPED, type KeyOutcome, OUTCOMES } from './keys/outcome.ts';
import { importedRecipeText } from './recipe-text.ts';
import { readSource, type SourceFormat, type ImportInputs } from './read-source.ts';

export interface ImportedRecipe extends ImportResult {
  /** The file as it was named. */
  readonly source: string;
  readonly format: SourceFormat;
  /** YAML, with comments. */
  readonly text: string;
  readonly counts: KeyCounts;
}

/** How many of verl's keys have which outcome. */
export interface KeyCounts extends Readonly<Record<KeyOutcome, number>> {
  readonly keys: number;
  readonly mapped: number;
}

const mostBytes = 4_000_000;

/** Throws InvalidInputError for a file that is none of the three formats, or has no key of verl's. */
export function importRecipe(path: string, inputs: ImportInputs, cwd: string): ImportedRecipe {
  const file = resolve(cwd, path);
  const shown = relative(cwd, file) || path;
  const source = readSource(textOf(file, path), file, shown, { cwd, ...inputs });
  const result = importEntries(source.entries, { ...source, env: inputs.env, engine: inputs.engine });
  const counts = countKeys(result.keys);
  if (counts.keys === counts.unknown)
    throw new InvalidInputError('the file has no key of verl', {
      where: shown,
      hint: 'give a script, a file of overrides or a YAML of verl',
    });
  return { ...result, source: shown, format: source.format, text: importedRecipeText(result, shown), counts };
}

function textOf(file: string, path: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new TerminalError('NotFound', `there is no file ${path}`);
  if (!found.isFile()) throw new InvalidInputError(`expected a file, but ${path} is none`, { where: path });
  if (found.size > mostBytes)
    throw new InvalidInputError(`${path} is too large to be read: more than ${mostBytes} bytes`, { where: path });
  return readFileSync(file, 'utf8');
}

function countKeys(keys: ImportResult['keys']): KeyCounts {
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<KeyOutcome, number>;
  for (const { outcome } of keys) counts[outcome] += 1;
  return { ...counts, keys: keys.length, mapped: keys.filter(({ outcome }) => MAPPED.has(outcome)).length };
}
