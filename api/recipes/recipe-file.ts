/** Reads a recipe file and overrides to a resolved recipe; every complaint names its place. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { nearestRunName } from '../../core/ids.ts';
import {
  checkRecipe,
  isTree,
  mergeTrees,
  type Override,
  parseOverride,
  type Recipe,
  removeAt,
  setAt,
  type Tree,
} from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { absolutePaths } from './recipe-paths.ts';
import { recipeErrors, type RecipeLayer } from './recipe-issues.ts';
import { parseRecipeSource } from './recipe-source.ts';
import { userHome } from '../../infra/home.ts';

export interface LoadedRecipe {
  readonly recipe: Recipe;
  /** Absolute path of the file named on the command line. */
  readonly file: string;
  /** The same, relative to the working folder. */
  readonly shown: string;
  /** The layers that tell where each key came from; for `recipeErrors`. */
  readonly layers: readonly RecipeLayer[];
}

/**
 * `path`: a file, or a folder with a recipe.yaml in it. Overrides are `key=value`; relative paths in them are read from
 * the working folder, those in a file from the file's folder. Throws InvalidInputError.
 */
export function loadRecipe(path: string, overrides: readonly string[], cwd: string): LoadedRecipe {
  const file = findRecipe(path, cwd);
  const layers = [
    ...readLayers(file, cwd, []),
    ...overrides.map((source) => overrideLayer(parseOverride(source), cwd)),
  ];
  const written = layers.reduce<Tree>((tree, layer) => layer.apply(tree), {});
  const result = checkRecipe(mergeTrees({ name: defaultName(file) }, written));
  if (!result.ok) throw recipeErrors(result.issues, layers);
  return { recipe: result.recipe, file, shown: relative(cwd, file), layers };
}

function findRecipe(path: string, cwd: string): string {
  const file = existsSync(resolve(cwd, path)) ? resolve(cwd, path) : exampleFolder(path);
  if (file === undefined)
    throw new InvalidInputError(`there is no recipe ${path}`, {
      hint: 'give a YAML file, a folder with a recipe.yaml in it, or the name of an example such as 01-arithmetic-grpo',
    });
  const kind = statSync(file);
  if (kind.isFile()) return file;
  if (!kind.isDirectory()) throw new InvalidInputError(`${path} is neither a file nor a folder`, { where: path });
  const inside = ['recipe.yaml', 'recipe.yml', 'recipe.json'].map((name) => join(file, name)).find(existsSync);
  if (inside === undefined) throw new InvalidInputError(`the folder ${path} has no recipe.yaml`, { where: path });
  return inside;
}

/** The folder of an example that came with petrel: `01-arithmetic-grpo`, with or without `examples/` before it. */
function exampleFolder(path: string): string | undefined {
  const name = /^(?:\.\/)?(?:examples\/)?([\w-]+)\/?$/.exec(path)?.[1];
  const folder = name === undefined ? undefined : join(packageRoot(), 'examples', name);
  return folder !== undefined && existsSync(join(folder, 'recipe.yaml')) ? folder : undefined;
}

/** A recipe and, below it, those it extends. */
function readLayers(file: string, cwd: string, above: readonly string[]): RecipeLayer[] {
  const shown = relative(cwd, file) || file;
  if (above.includes(file))
    throw new InvalidInputError(
      `recipes extend each other in a circle: ${[...above, file].map((one) => basename(one)).join(' -> ')}`,
      { where: shown },
    );
  const source = parseRecipeSource(readFileSync(file, 'utf8'), shown);
  const value = source.value ?? {};
  if (!isTree(value)) throw new InvalidInputError('a recipe is a mapping of keys', { where: shown });
  const own = absolutePaths(removeAt(value, ['extends']), dirname(file), userHome());
  const layer: RecipeLayer = { type: 'file', source, apply: (tree) => mergeTrees(tree, own) };
  const base = value['extends'];
  if (base === undefined) return [layer];
  if (typeof base !== 'string') throw new InvalidInputError('extends: expected the path of a recipe', { where: shown });
  const baseFile = resolve(dirname(file), base);
  if (!existsSync(baseFile)) throw new InvalidInputError(`extends: there is no recipe ${base}`, { where: shown });
  return [...readLayers(baseFile, cwd, [...above, file]), layer];
}

function overrideLayer(override: Override, cwd: string): RecipeLayer {
  if (override.type === 'remove') return { type: 'override', override, apply: (tree) => removeAt(tree, override.path) };
  const placed = absolutePaths(setAt({}, override.path, override.value), cwd, userHome());
  const value = override.path.reduce<unknown>(
    (tree, name) => (isTree(tree) && Object.hasOwn(tree, name) ? tree[name] : undefined),
    placed,
  );
  return { type: 'override', override, apply: (tree) => setAt(tree, override.path, value) };
}

/** The folder's name for recipe.yaml, else the file's. */
function defaultName(file: string): string {
  const stem = basename(file, extname(file));
  const name = stem === 'recipe' ? basename(dirname(file)) : stem;
  return nearestRunName(name) ?? 'run';
}
