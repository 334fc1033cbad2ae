/** The differences between two recipes of a run, by change class. */
import { canonicalJson } from '../canonical.ts';
import type { ChangeClass } from './key.ts';
import { recipeKeys } from './keys.ts';
import type { Recipe } from './schema.ts';

export interface RecipeChange {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly change: ChangeClass;
}

/** Changed keys in the order of the schema. */
export function recipeChanges(from: Recipe, to: Recipe): RecipeChange[] {
  return recipeKeys
    .map(({ path, change }) => ({ path, from: valueOf(from, path), to: valueOf(to, path), change }))
    .filter((entry) => canonicalJson(entry.from) !== canonicalJson(entry.to));
}

/** The value at a dotted path of a resolved recipe. */
export function valueOf(recipe: Recipe, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], recipe);
}
