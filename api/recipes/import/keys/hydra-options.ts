/** The options of Hydra among the words of a call: which configuration it reads, and from where. */
import type { OverrideWord } from './entries.ts';

/** What `--config-path`, `--config-name` and `--config-dir` say; texts may have holes. */
export interface HydraOptions {
  readonly path?: string;
  readonly name?: string;
  /** Folders that are searched, too. */
  readonly folders: readonly string[];
  /** Line of the first of the options. */
  readonly line?: number;
  /** The other words, in order. */
  readonly rest: readonly OverrideWord[];
}

type Option = 'path' | 'name' | 'dir';
const LONG: readonly (readonly [string, Option])[] = [
  ['--config-path', 'path'],
  ['--config-name', 'name'],
  ['--config-dir', 'dir'],
];
const SHORT: Readonly<Record<string, Option>> = { '-cp': 'path', '-cn': 'name', '-cd': 'dir' };

/** Takes the options out. A value stands after `=` or in the next word; the last one of an option decides. */
export function hydraOptions(words: readonly OverrideWord[]): HydraOptions {
  const found: { path?: string; name?: string; line?: number } = {};
  const folders: string[] = [];
  const rest: OverrideWord[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as OverrideWord;
    const [, spelled = word.text, , inline] = /^(--?[\w-]+)(=(.*))?$/s.exec(word.text) ?? [];
    const option = optionOf(spelled);
    if (option === undefined) {
      rest.push(word);
      continue;
    }
    if (inline === undefined) at += 1;
    const value = inline ?? words[at]?.text ?? '';
    if (word.line !== undefined) found.line ??= word.line;
    if (option === 'dir') folders.push(value);
    else found[option] = value;
  }
  return { ...found, folders, rest };
}

/** Python’s argument parser takes the beginning of a long option, too: `--config-n`. */
function optionOf(word: string): Option | undefined {
  const long = LONG.find(([name]) => word.length > '--config-'.length && name.startsWith(word));
  return long?.[1] ?? (Object.hasOwn(SHORT, word) ? SHORT[word] : undefined);
}
