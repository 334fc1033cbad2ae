/**
 * The text of an imported recipe: keys in petrel's order, differences above their keys, and what was left out at the
 * end.
 */
import { parse } from 'yaml';
import { isTree, recipeKeys, type Tree } from '../../../core/recipe/index.ts';
import { importReasonText } from './keys/map-entries.ts';
import type { ImportedKey, ImportResult, ImportLoss } from './keys/outcome.ts';
import { importLossText, importLossTitle } from './keys/losses.ts';

/** `source`: the imported file, as it is named in the first line. */
export function importedRecipeText(result: ImportResult, source: string): string {
  return `${[
    ...lossLines(result.losses, source),
    comment(`Made by petrel recipe import from ${source}. What this recipe would do: petrel plan.`),
    ...keyLines(result),
    ...leftOut(result.keys),
  ].join('\n')}\n`;
}

/** What the recipe lacks stands above everything else. */
function lossLines(losses: readonly ImportLoss[], source: string): string[] {
  if (losses.length === 0) return [];
  return [comment(importLossTitle(losses, source)), ...losses.map((loss) => comment(`  ${importLossText(loss)}`))];
}

/** Sections are opened where they begin; recipeKeys has the keys of a section together. */
function keyLines({ tree, keys, defaults, engines }: ImportResult): string[] {
  const lines: string[] = [];
  let open: readonly string[] = [];
  for (const { path } of recipeKeys) {
    const value = at(tree, path);
    if (value === undefined) continue;
    const names = path.split('.');
    const sections = names.slice(0, -1);
    const shared = sections.findIndex((name, index) => name !== open[index]);
    for (let depth = shared < 0 ? sections.length : shared; depth < sections.length; depth += 1)
      lines.push(`${indent(depth)}${sections[depth]}:`);
    open = sections;
    const note =
      noteFor(path, keys) ??
      defaults.find((one) => one.isWritten && one.petrel === path)?.note ??
      (path === 'trainer.engine' ? engines.why : undefined);
    if (note !== undefined) lines.push(indent(sections.length) + comment(note));
    lines.push(`${indent(sections.length)}${names.at(-1)}: ${yamlValue(value)}`);
  }
  return lines;
}

function noteFor(path: string, keys: readonly ImportedKey[]): string | undefined {
  const key = keys.findLast((one) => one.petrel === path && 'written' in one);
  if (key === undefined) return undefined;
  if (key.outcome === 'moved') return `verl: ${key.verl}`;
  return key.note === undefined ? undefined : `verl: ${key.verl}: ${key.note}`;
}

/** Keys without a counterpart, one comment for each reason. */
function leftOut(keys: readonly ImportedKey[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const key of keys) {
    const reason = LEFT_OUT[key.outcome];
    if (reason === undefined) continue;
    const text = `${reason}${importReasonText(key)}`;
    byReason.set(text, [...(byReason.get(text) ?? []), key.verl]);
  }
  const lines = [...byReason].flatMap(([reason, names]) => [
    comment(`  ${reason}`),
    ...names.map((name) => comment(`    ${name}`)),
  ]);
  return lines.length === 0 ? [] : [comment('Left out:'), ...lines];
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  none: '',
  refused: 'A value that petrel does not take: ',
  unreadable: 'The value is not known: ',
  unknown: 'petrel does not know this key. ',
};

const at = (tree: Tree, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (isTree(value) && Object.hasOwn(value, name) ? value[name] : undefined), tree);

const indent = (depth: number): string => '  '.repeat(depth);

/** One line, whatever is in the input. */
const comment = (text: string): string =>
  `# ${[...text]
    .map((char) => (char < ' ' || char === '\u007f' ? ' ' : char))
    .join('')
    .slice(0, 300)}`.trimEnd();

/** Flow style: a recipe's values are short. */
function yamlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(yamlValue).join(', ')}]`;
  if (isTree(value))
    return `{${Object.entries(value)
      .map(([name, one]) => ` ${yamlValue(name)}: ${yamlValue(one)}`)
      .join(',')} }`;
  if (typeof value === 'string') return isPlain(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? 'null';
}

/** May the text stand without quotes? */
const isPlain = (text: string): boolean => /^[A-Za-z~./][\w./@~-]*$/.test(text) && parse(text) === text;
