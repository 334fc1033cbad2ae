/** A Hydra YAML: nested keys, and the files beside it that its `defaults` list names. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { InvalidInputError } from '../../../core/errors.ts';
import { Entries } from './keys/entries.ts';
import { holdsDefaults, isOwnConfig } from './keys/modules.ts';
import { isTree, removeAt, type Tree } from '../../../core/recipe/index.ts';
import { parseRecipeSource, type RecipeSource } from '../recipe-source.ts';

/** Files that one configuration may be composed of. */
const mostFiles = 100;
/** Characters of each. */
const mostCharacters = 1_000_000;
const mostDepth = 10;

/** What a composition begins with, and where it looks for files. */
export interface CompositionInputs {
  /** Keys that were set before. */
  readonly entries?: Entries;
  /** Folders that are searched besides the file's own. */
  readonly folders?: readonly string[];
  /** Folders in which relative folders of `hydra.searchpath` may begin. */
  readonly bases?: readonly string[];
  /** Groups that the call chooses: `actor@actor_rollout_ref.actor` → option. */
  readonly choices?: ReadonlyMap<string, string>;
  /** The folder from which files are named in a report; absent: the file's own. */
  readonly cwd?: string;
}

/** Throws InvalidInputError for what is no YAML, or neither a mapping nor a list of overrides. */
export function readYaml(text: string, file: string, shown: string, inputs: CompositionInputs = {}): Entries {
  return new Composition(file, inputs).read(text, shown);
}

class Composition {
  /** Files of groups are looked for in these folders and below, and nowhere above. */
  readonly #roots: string[];
  readonly #file: string;
  readonly #bases: readonly string[];
  readonly #choices: Map<string, string>;
  readonly #entries: Entries;
  readonly #cwd: string;
  #files = 0;

  constructor(
    file: string,
    { entries = new Entries(), folders = [], bases = [], choices = new Map(), cwd = dirname(file) }: CompositionInputs,
  ) {
    this.#cwd = cwd;
    this.#file = file;
    this.#roots = [dirname(file), ...folders];
    this.#bases = bases;
    this.#choices = new Map(choices);
    this.#entries = entries;
  }

  read(text: string, shown: string): Entries {
    const source = parseYaml(text, shown);
    const { value } = source;
    if (Array.isArray(value)) {
      for (const [index, one] of value.entries())
        this.#entries.override({ text: String(one), line: source.position([String(index)], 'value')?.line ?? 1 });
    } else if (isTree(value)) this.#primary(value, source);
    else throw new InvalidInputError('expected a mapping of keys, or a list of overrides', { where: shown });
    return this.#entries;
  }

  /** `hydra.searchpath` and `override …` lines hold for the whole composition. */
  #primary(tree: Tree, source: RecipeSource): void {
    const { hydra } = tree;
    const listed = isTree(hydra) && Array.isArray(hydra['searchpath']) ? hydra['searchpath'] : [];
    for (const one of listed) this.#roots.push(...searched(String(one), this.#bases));
    for (const { isOverride, key, option } of stepsOf(tree).flatMap(optionsOf))
      if (isOverride && !this.#choices.has(key)) this.#choices.set(key, option);
    this.#compose(tree, { file: this.#file, package: '', depth: 0, source });
  }

  /** Composes a config: its own keys stand where `_self_` is, or before the others without `_self_`, as in Hydra. */
  #compose(tree: Tree, place: Place): void {
    const own = removeAt(removeAt(tree, ['defaults']), ['hydra']);
    const defaults = stepsOf(tree);
    const steps = defaults.includes('_self_') ? defaults : ['_self_', ...defaults];
    for (const step of steps) {
      if (step === '_self_') this.#own(own, place);
      else for (const one of optionsOf(step)) if (!one.isOverride) this.#include(one, place);
    }
  }

  #own(own: Tree, { package: base, source }: Place): void {
    for (const [path, value] of leaves(own, [])) {
      const line = source.position(path, 'value')?.line;
      const key = [...(base === '' ? [] : [base]), ...path].join('.');
      if (value === '???') this.#entries.note(`${key} has no value (???)`, line);
      else this.#entries.set(key, value, line);
    }
  }

  #include(given: Option, place: Place): void {
    const option = this.#choices.get(given.key) ?? given.option;
    const { group, package: wanted } = given;
    if (option === 'null') return;
    const name = group === '' ? option : `${group}/${option}`;
    const path = place.depth >= mostDepth || this.#files >= mostFiles ? undefined : this.#find(name, group, place.file);
    if (path === undefined) {
      this.#notFound(name, group, given.isOptional, place);
      return;
    }
    this.#files += 1;
    const text = readFileSync(path, 'utf8');
    const shown = relative(this.#cwd, path);
    const source = parseYaml(text, shown);
    if (!isTree(source.value)) return;
    const own = /^#\s*@package\s+(\S+)/m.exec(text)?.[1] ?? wanted;
    const inner = packageOf(own, group, place.package);
    const composed = { file: path, package: inner, depth: place.depth + 1, source };
    const compose = () => this.#entries.whileIn(shown, () => this.#compose(source.value as Tree, composed));
    if (group === '' && holdsDefaults(option)) this.#entries.whileDefaults(compose);
    else compose();
  }

  /** Looks beside the file that names it, then in the folders that are searched. */
  #find(name: string, group: string, from: string): string | undefined {
    const folders = group.startsWith('/') ? this.#roots : [dirname(from), ...this.#roots];
    return folders
      .map((folder) => resolve(folder, `${name.replace(/^\//, '').replace(/\.ya?ml$/, '')}.yaml`))
      .find((path) => path !== from && this.#roots.some((root) => path.startsWith(root + sep)) && isFile(path));
  }

  /** The values of verl's own files are verl's defaults; those of other files are lost. */
  #notFound(name: string, group: string, isOptional: boolean, { depth }: Place): void {
    if (isOptional || (group === '' && isOwnConfig(name))) return;
    const text = `defaults: ${name} is not beside this file and is not read; keys that it sets keep their defaults`;
    if (depth >= mostDepth || VERL_GROUPS.test(group)) this.#entries.note(text);
    else this.#entries.noteLoss(text);
  }
}

/** Groups of verl's own configuration: `actor@actor_rollout_ref.actor: dp_actor`. */
const VERL_GROUPS =
  /^\/?(?:actor|critic|ref|rollout|data|reward|reward_model|reward_manager|model|model_engine|engine|optim|algorithm|distillation|profiler|npu_profile|legacy_reward_impl)(?:$|\/)/;

/** The folders of an entry of `hydra.searchpath`: `file://verl/trainer/config`, `pkg://verl.trainer.config`. */
function searched(entry: string, bases: readonly string[]): string[] {
  const [, scheme, rest = ''] = /^(file|pkg):\/\/(.*)$/.exec(entry) ?? [];
  if (scheme === undefined) return [];
  const path = scheme === 'pkg' ? rest.replaceAll('.', '/') : rest;
  const found = (isAbsolute(path) ? [path] : bases.map((base) => resolve(base, path))).find((one) => existsSync(one));
  return found === undefined ? [] : [found];
}

const stepsOf = (tree: Tree): readonly unknown[] => (Array.isArray(tree['defaults']) ? tree['defaults'] : []);

interface Place {
  readonly file: string;
  /** Dotted path under which the keys of the file go. */
  readonly package: string;
  readonly depth: number;
  /** The source for line numbers. */
  readonly source: RecipeSource;
}

/** One line of a `defaults` list. */
interface Option {
  readonly group: string;
  readonly option: string;
  /** The word after `@`. */
  readonly package?: string;
  /** `group@package`, by which a later line or the call chooses another option. */
  readonly key: string;
  readonly isOverride: boolean;
  readonly isOptional: boolean;
}

/** `name`, `group: option`, `group@package: [option, …]`, `optional …`, `override …`. */
function optionsOf(step: unknown): Option[] {
  if (typeof step === 'string') {
    const [option = '', wanted] = step.split('@');
    return [optionOf('', option, wanted, '')];
  }
  if (!isTree(step)) return [];
  return Object.entries(step).flatMap(([key, value]) => {
    const [, word = ''] = /^(optional|override)\s+/.exec(key) ?? [];
    const [group = '', wanted] = key.replace(/^(?:optional|override)\s+/, '').split('@');
    const options = [value].flat().filter((one): one is string => typeof one === 'string');
    return options.map((option) => optionOf(group, option, wanted, word));
  });
}

function optionOf(group: string, option: string, wanted: string | undefined, word: string): Option {
  const key = `${group.replace(/^\//, '')}${wanted === undefined ? '' : `@${wanted}`}`;
  const flags = { isOverride: word === 'override', isOptional: word === 'optional' };
  return { group, option, key, ...flags, ...(wanted !== undefined && { package: wanted }) };
}

function packageOf(own: string | undefined, group: string, above: string): string {
  if (own === '_global_') return '';
  if (own === '_here_') return above;
  const below = own ?? group.replace(/^\//, '').replaceAll('/', '.');
  return [above, below].filter((part) => part !== '').join('.');
}

/** Values with their paths; empty mappings stay. */
function leaves(tree: Tree, path: readonly string[]): [readonly string[], unknown][] {
  return Object.entries(tree).flatMap(([name, value]): [readonly string[], unknown][] =>
    isTree(value) && Object.keys(value).length > 0 && path.length < 30
      ? leaves(value, [...path, name])
      : [[[...path, name], value]],
  );
}

const isFile = (path: string): boolean =>
  existsSync(path) && statSync(path).isFile() && statSync(path).size <= mostCharacters;

/** Reads one file of the configuration. Throws InvalidInputError. */
function parseYaml(text: string, shown: string): RecipeSource {
  if (text.length > mostCharacters)
    throw new InvalidInputError(`the file is too large to be read: more than ${mostCharacters} characters`, {
      where: shown,
    });
  return parseRecipeSource(text, shown);
}

export const isYamlName = (file: string): boolean => /\.(?:ya?ml|json)$/i.test(file);
