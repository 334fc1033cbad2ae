/**
 * The configuration that a script's call reads before its overrides: what its module sets, and the YAML that it names.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { Entries, type OverrideWord } from './keys/entries.ts';
import { type HydraOptions, hydraOptions } from './keys/hydra-options.ts';
import { holdsDefaults, isOwnConfig, type TrainingModule, trainingModule } from './keys/modules.ts';
import type { Launch } from './shell/launch.ts';
import { hasHole, withoutHoles } from './shell/holes.ts';
import { readYaml } from './read-yaml.ts';

/** The place of a script, and the folder from which it is imported. */
export interface LaunchPlace {
  readonly script: string;
  readonly cwd: string;
}

/** The keys below a call's overrides, and the words that are left. */
export interface LaunchConfig {
  readonly entries: Entries;
  readonly rest: readonly OverrideWord[];
  /** Sets what the module's code decides, after the overrides. */
  readonly finish: () => void;
}

/** Reads what stands below the overrides of a call. A configuration that is not found is noted as a loss. */
export function launchConfig({ module, line, words }: Launch, place: LaunchPlace): LaunchConfig {
  const entries = new Entries();
  const row = trainingModule(module);
  for (const [path, value] of Object.entries(row?.sets ?? {})) entries.set(path, value);
  if (row?.lost !== undefined) entries.noteLoss(`${module}: ${row.lost}`, line);
  if (row === undefined)
    entries.noteLoss(
      `${module} is no module that petrel knows: what its code does and sets by itself is not read`,
      line,
    );
  const options = hydraOptions(words);
  readConfig(options, module, row, place, entries);
  const finish = () => {
    for (const [path, value] of Object.entries(row?.method ?? {})) {
      entries.set(path, value, line);
      entries.note(`${module} does so in its code: ${path} is ${String(value)}`, line);
    }
  };
  return { entries, rest: options.rest, finish };
}

function readConfig(
  options: HydraOptions,
  module: string,
  row: TrainingModule | undefined,
  place: LaunchPlace,
  entries: Entries,
): void {
  const { path, name = row?.config, folders, line } = options;
  const bases = basesOf(place);
  if (name === undefined) return;
  const extra = folders.flatMap((folder) => foldersOf(folder, bases));
  const file = [...configFolders(path, module, bases), ...extra]
    .map((folder) => join(folder, `${withoutHoles(name).replace(/\.ya?ml$/, '')}.yaml`))
    .find((one) => !hasHole(name) && isFile(one));
  if (file !== undefined) {
    const choices = choicesIn(options.rest);
    const shown = relative(place.cwd, file) || file;
    const inputs = { entries, folders: extra, bases, choices, cwd: place.cwd };
    const read = () => entries.whileIn(shown, () => readYaml(readFileSync(file, 'utf8'), file, shown, inputs));
    if (holdsDefaults(name)) entries.whileDefaults(read);
    else read();
  } else if (!isOwnConfig(name)) entries.noteLoss(notFound(path, name), line);
}

function notFound(path: string | undefined, name: string): string {
  const folder = path === undefined ? '' : withoutHoles(path);
  const named = [folder === '' ? undefined : `--config-path ${folder}`, `--config-name ${withoutHoles(name)}`];
  const text = named.filter((one) => one !== undefined).join(' ');
  return `the configuration of ${text} is not beside the script, so none of its keys is read: put its folder there, or import from the folder where the script runs`;
}

/** The folders where a script's relative paths may begin: its own, the working folder, and those above the script. */
function basesOf({ script, cwd }: LaunchPlace): string[] {
  const bases = [dirname(script), cwd];
  for (let at = dirname(script); at !== dirname(at) && bases.length < mostBases; at = dirname(at))
    bases.push(dirname(at));
  return [...new Set(bases)];
}

const mostBases = 10;

/**
 * Hydra takes a relative path from the folder of the module; scripts are also written as if it began where they run.
 */
function configFolders(path: string | undefined, module: string, bases: readonly string[]): string[] {
  const inModule = moduleFolder(module);
  if (path === undefined) return bases.flatMap((base) => [join(base, inModule, 'config'), join(base, 'config')]);
  if (isAbsolute(path)) return [path];
  const plain = hasHole(path) ? [] : bases.map((base) => resolve(base, inModule, path));
  return [...plain, ...foldersOf(path, bases)];
}

/** A folder that begins with an unknown value, such as `$(pwd)`, is looked for under each base. */
function foldersOf(folder: string, bases: readonly string[]): string[] {
  const known = folder.replace(/^(?:\0\d+\0|\.)*\//, '');
  if (hasHole(known)) return [];
  return isAbsolute(folder) ? [folder] : bases.map((base) => resolve(base, known));
}

/** `recipe.dapo.main_dapo` stands in recipe/dapo. */
const moduleFolder = (module: string): string =>
  module.endsWith('.py') ? dirname(module) : module.split('.').slice(0, -1).join('/');

/** `actor@actor_rollout_ref.actor=own` among the words. */
function choicesIn(words: readonly OverrideWord[]): ReadonlyMap<string, string> {
  return new Map(
    words.flatMap(({ text }) => {
      const [, key, option] = /^\+{0,2}([\w/]+@[\w.]+|[\w]+\/[\w/]+)=(.+)$/.exec(text) ?? [];
      return key === undefined || option === undefined ? [] : [[key, option] as const];
    }),
  );
}

const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile();
