/** Reads a file to verl's keys: a shell script, a plain file of overrides, or a Hydra YAML. Nothing is executed. */
import { dirname } from 'node:path';
import { InvalidInputError } from '../../../core/errors.ts';
import type { ImportEngine } from './keys/engine-choice.ts';
import { Entries, type OverrideWord } from './keys/entries.ts';
import { isImportOverride, overridesIn } from './keys/overrides-file.ts';
import { type ReadScript, readScript } from './shell/evaluate.ts';
import { type Hole, hasHole, withoutHoles } from './shell/holes.ts';
import type { Launch } from './shell/launch.ts';
import { launchConfig } from './launch-config.ts';
import { isYamlName, readYaml } from './read-yaml.ts';

export type SourceFormat = 'script' | 'overrides' | 'yaml';

export interface ImportInputs {
  /** Variables, as with `NAME=value bash script.sh`. */
  readonly env: ReadonlyMap<string, string>;
  /** The script's arguments, as in `bash script.sh 8 /path`: `$1`, `$2`. */
  readonly args?: readonly string[] | undefined;
  /** Overrides after the file, which `"$@"` has behind the arguments. */
  readonly words: readonly string[];
  /** Which call of a training, from 1; needed when a script has several. */
  readonly call?: number | undefined;
  /** The engine that the recipe shall name; absent: the script decides (keys/engine-choice.ts). */
  readonly engine?: ImportEngine | undefined;
  /** The folder where the script runs; absent: its own. */
  readonly cwd?: string;
}

export interface ReadSource {
  readonly format: SourceFormat;
  readonly kind: 'rl' | 'sft';
  readonly entries: Entries;
  readonly holesIn?: (text: string) => readonly Hole[];
}

/** `shown`: the file as it is named in errors. Throws InvalidInputError when it has no training. */
export function readSource(text: string, file: string, shown: string, inputs: ImportInputs): ReadSource {
  if (text.includes('\0')) throw new InvalidInputError('expected a text, but the file is binary', { where: shown });
  const format = formatOf(text, file);
  if (format === 'script') return readLaunch(text, file, shown, inputs);
  const entries =
    format === 'yaml'
      ? readYaml(text, file, shown, { cwd: inputs.cwd ?? dirname(file) })
      : fromOverrides(overridesIn(text));
  for (const word of inputs.words) entries.override({ text: word });
  return { format, kind: kindOf(entries), entries };
}

function formatOf(text: string, file: string): SourceFormat {
  if (isYamlName(file)) return 'yaml';
  if (/\.(?:ba)?sh$/i.test(file) || /^#!|(?:^|\s)-m\s+[\w.]+/m.test(text))
    return onlyOverrides(text) ? 'overrides' : 'script';
  if (onlyOverrides(text)) return 'overrides';
  return /^\s*(?:[\w.-]+\s*:(?:\s|$)|- )/m.test(text) ? 'yaml' : 'script';
}

/** Every line begins with `a.b=`, or a sign before it. */
function onlyOverrides(text: string): boolean {
  const lines = overridesIn(text);
  return (
    lines.length > 0 &&
    lines.every((word) => isImportOverride(word.text)) &&
    lines.some((word) => /^[^=]*\./.test(word.text))
  );
}

function fromOverrides(words: readonly OverrideWord[]): Entries {
  const entries = new Entries();
  for (const word of words) entries.override(word);
  return entries;
}

/** verl's configuration of supervised runs has its optimiser at the top. */
function kindOf(entries: Entries): 'rl' | 'sft' {
  const begins = (start: string) => entries.all.some(({ path }) => path.startsWith(start));
  const isSupervised = ['optim.', 'data.micro_batch_size', 'model.partial_pretrain'].some(begins);
  return isSupervised && !begins('actor_rollout_ref.') && !begins('algorithm.') ? 'sft' : 'rl';
}

function readLaunch(text: string, file: string, shown: string, inputs: ImportInputs): ReadSource {
  const script = readAt(text, shown, inputs);
  const launch = chosen(script, shown, inputs.call);
  const { entries, rest, finish } = launchConfig(launch, { script: file, cwd: inputs.cwd ?? dirname(file) });
  for (const { text: word, line = 0 } of rest) {
    const place = line > 0 ? { line } : {};
    const known = withoutHoles(word);
    const hole = script.holesIn(word)[0];
    // A word of which not even the key is known.
    if (hole !== undefined && (known === '' || hasHole(word.split('=')[0] ?? '')))
      entries.noteLoss(`words of the call are not known: ${hole.reason}`, hole.line);
    else entries.override({ text: word, ...place });
  }
  // A script may not pass its "$@" on.
  const passed = new Set(launch.words.flatMap(({ text, isOverride }) => (isOverride === true ? [text] : [])));
  for (const word of inputs.words) if (!passed.has(word)) entries.override({ text: word });
  finish();
  for (const note of script.notes) entries.note(note.text, note.line);
  const kind = /sft_trainer/.test(launch.module) ? 'sft' : 'rl';
  return { format: 'script', kind, entries, holesIn: script.holesIn };
}

/** Errors of the reader name a line; here they get the file, too. */
function readAt(text: string, shown: string, inputs: ImportInputs): ReadScript {
  try {
    return readScript(text, inputs);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.message, { where: `${shown}, ${error.where ?? ''}` });
  }
}

const NO_CALL = 'give the script that starts the training; --args and --env give its arguments and variables';

function chosen({ launches, notes, exitLine }: ReadScript, shown: string, call: number | undefined): Launch {
  const [first] = launches;
  if (first === undefined)
    throw new InvalidInputError(
      exitLine === undefined
        ? 'the script has no call of a training of verl, such as python3 -m verl.trainer.main_ppo'
        : `the script ends in line ${exitLine}, before a call of a training of verl`,
      { where: shown, hint: notes[0] === undefined ? NO_CALL : `line ${notes[0].line}: ${notes[0].text}` },
    );
  if (call === undefined && launches.length === 1) return first;
  const found = call === undefined ? undefined : launches[call - 1];
  if (found !== undefined) return found;
  throw new InvalidInputError(`the script has ${launches.length} calls of a training`, {
    where: shown,
    hint: `choose one with --call: ${launches.map(({ line }, index) => `${index + 1} (line ${line})`).join(', ')}`,
  });
}
