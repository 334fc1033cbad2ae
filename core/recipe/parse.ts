import { mergeTrees, isTree, setAt, type Tree } from './merge.ts';
import { InvalidRecipeError, type RecipeIssue } from './issues.ts';
import { recipeKeys, recipeSections } from './keys.ts';
import { RUN_KINDS, samplesResponses } from '../run-kinds.ts';
import { type Recipe, recipeSchema } from './schema.ts';
import { findSecrets } from './secrets.ts';
import { showValue } from './show-value.ts';
import { fromZodIssue } from './zod-issues.ts';

export type RecipeResult =
  | { readonly ok: true; readonly recipe: Recipe }
  | { readonly ok: false; readonly issues: readonly RecipeIssue[] };

/** Resolves a recipe: fills in defaults and checks every key. Throws InvalidRecipeError with all errors. */
export function parseRecipe(input: unknown): Recipe {
  const result = checkRecipe(input);
  if (!result.ok) throw new InvalidRecipeError(result.issues);
  return result.recipe;
}

/**
 * The recipe of a stored revision. What a key that it lacks meant when it was stored can differ from today's default.
 */
export function parseStoredRecipe(stored: Tree): Recipe {
  return parseRecipe(mergeTrees(formerDefaults, stored));
}

const formerDefaults: Tree = { actor: { use_prefix_grouper: false } };

/** `parseRecipe` that returns the issues instead of throwing. */
export function checkRecipe(input: unknown): RecipeResult {
  if (!isTree(input)) {
    return { ok: false, issues: [{ path: '', message: `a recipe is a mapping of keys, got ${showValue(input)}` }] };
  }
  const secrets = findSecrets(input);
  const filled = fill(input);
  const parsed = recipeSchema.safeParse(filled);
  if (parsed.success && secrets.length === 0) return { ok: true, recipe: freeze(parsed.data) };
  const secretPaths = new Set(secrets.map((issue) => issue.path));
  const others = (parsed.error?.issues ?? []).flatMap((issue) => fromZodIssue(issue, filled));
  return { ok: false, issues: [...secrets, ...others.filter((issue) => !secretPaths.has(issue.path))] };
}

/**
 * Defaults that depend on `kind`, as a layer below the input. A section left empty in YAML is null, which means the
 * same as a missing one.
 */
function fill(input: Tree): Tree {
  const below = givenResponses.has(input['kind']) ? SFT_DEFAULTS : {};
  return mergeTrees(below, dropEmptySections(input, ''));
}

/** Kinds whose responses come with the rows have the same defaults. */
const givenResponses: ReadonlySet<unknown> = new Set(RUN_KINDS.filter((kind) => !samplesResponses(kind)));

const SFT_DEFAULTS: Tree = recipeKeys
  .filter((entry) => entry.sftDefault !== undefined)
  .reduce<Tree>((tree, entry) => setAt(tree, entry.path.split('.'), entry.sftDefault), {});

const SECTION_PATHS: ReadonlySet<string> = new Set(recipeSections.map((entry) => entry.path));

function dropEmptySections(tree: Tree, prefix: string): Tree {
  const kept = Object.entries(tree).filter(([name, value]) => !(value === null && SECTION_PATHS.has(prefix + name)));
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      isTree(value) && SECTION_PATHS.has(prefix + name) ? dropEmptySections(value, `${prefix}${name}.`) : value,
    ]),
  );
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}
