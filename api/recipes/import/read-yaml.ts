/** A Hydra YAML: nested keys, and the files beside it that its `defaults` list names. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, relative, resolve, sep } from 'node:path';
import { InvalidInputError } from '../../../core/errors.ts';
import { Entries } from '../../../core/recipe/import/entries.ts';
import { isTree, removeAt, type Tree } from '../../../core/recipe/index.ts';
import { parseRecipeSource, type RecipeSource } from '../recipe-source.ts';

/** Files that one configuration may be composed of. */
const mostFiles = 100;
/** Characters of each. */
const mostCharacters = 1_000_000;
const mostDepth = 10;

/** Throws InvalidInputError for what is no YAML, or neither a mapping nor a list of overrides. */
export function readYaml(text: string, file: string, shown: string): Entries {
  return new Composition(file).read(text, shown);
}

class Composition {
  /** Files of groups are looked for here, and nowhere above. */
  readonly #root: string;
  readonly #file: string;
  readonly #entries = new Entries();
  #files = 0;

  constructor(file: string) {
    this.#file = file;
    this.#root = dirname(file);
  }

  read(text: string, shown: string): Entries {
    const source = parseYaml(text, shown);
    const { value } = source;
    if (Array.isArray(value)) {
      for (const [index, one] of value.entries())
        this.#entries.override({ text: String(one), line: source.position([String(index)], 'value')?.line ?? 1 });
    } else if (isTree(value)) this.#compose(value, { file: this.#file, package: '', depth: 0, source });
    else throw new InvalidInputError('expected a mapping of keys, or a list of overrides', { where: shown });
    return this.#entries;
  }

  /** Composes a config: its own keys stand where `_self_` is, or before the others without `_self_`, as in Hydra. */
  #compose(tree: Tree, place: Place): void {
    const list = tree['defaults'];
    const defaults: readonly unknown[] = Array.isArray(list) ? list : [];
    const own = removeAt(removeAt(tree, ['defaults']), ['hydra']);
    const steps = defaults.includes('_self_') ? defaults : ['_self_', ...defaults];
    for (const step of steps) {
      if (step === '_self_') this.#own(own, place);
      else for (const one of optionsOf(step)) this.#include(one, place);
    }
  }

  #own(own: Tree, { package: base, source }: Place): void {
    for (const [path, value] of leaves(own, [])) {
      const line = source?.position(path, 'value')?.line;
      const key = [...(base === '' ? [] : [base]), ...path].join('.');
      if (value === '???') this.#entries.note(`${key} has no value (???)`, line);
      else this.#entries.set(key, value, line);
    }
  }

  #include({ group, option, package: wanted, isOverride }: Option, place: Place): void {
    const name = group === '' ? option : `${group}/${option}`;
    const isAbsolute = group.startsWith('/');
    const folder = isAbsolute ? this.#root : dirname(place.file);
    const path = resolve(folder, `${name.replace(/^\//, '')}.yaml`);
    const below = path.startsWith(this.#root + sep);
    if (isOverride || !below || place.depth >= mostDepth || this.#files >= mostFiles || !isFile(path)) {
      this.#entries.note(
        `defaults: ${name} is not beside this file and is not read; keys that it sets keep their defaults`,
      );
      return;
    }
    this.#files += 1;
    const text = readFileSync(path, 'utf8');
    const source = parseYaml(text, relative(this.#root, path));
    if (!isTree(source.value)) return;
    const own = /^#\s*@package\s+(\S+)/m.exec(text)?.[1] ?? wanted;
    const inner = packageOf(own, group, place.package);
    this.#compose(source.value, { file: path, package: inner, depth: place.depth + 1 });
  }
}

interface Place {
  readonly file: string;
  /** Dotted path under which the keys of the file go. */
  readonly package: string;
  readonly depth: number;
  /** The source for line numbers; only of the file that is imported. */
  readonly source?: RecipeSource;
}

/** One line of a `defaults` list. */
interface Option {
  readonly group: string;
  readonly option: string;
  /** The word after `@`. */
  readonly package?: string;
  readonly isOverride: boolean;
}

/** `name`, `group: option`, `group@package: [option, …]`, `optional …`, `override …`. */
function optionsOf(step: unknown): Option[] {
  if (typeof step === 'string') {
    const [option = '', wanted] = step.split('@');
    return [{ group: '', option, isOverride: false, ...(wanted !== undefined && { package: wanted }) }];
  }
  if (!isTree(step)) return [];
  return Object.entries(step).flatMap(([key, value]) => {
    const isOverride = /^override\s/.test(key);
    const [group = '', wanted] = key.replace(/^(?:optional|override)\s+/, '').split('@');
    const options = [value].flat().filter((one): one is string => typeof one === 'string');
    return options.map((option) => ({ group, option, isOverride, ...(wanted !== undefined && { package: wanted }) }));
  });
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

/** YAML can be nested so deeply that its reader fails, or repeat its anchors without end. */
function parseYaml(text: string, shown: string): RecipeSource {
  if (text.length > mostCharacters)
    throw new InvalidInputError(`the file is too large to be read: more than ${mostCharacters} characters`, {
      where: shown,
    });
  try {
    return parseRecipeSource(text, shown);
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    throw new InvalidInputError('not a YAML that petrel can read: it is nested or repeated too often', {
      where: shown,
      cause: error,
    });
  }
}

export const isYamlName = (file: string): boolean => /\.(?:ya?ml|json)$/i.test(file);
