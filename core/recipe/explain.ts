/** Explains a key, for `petrel recipe explain`. */
import { nearest } from '../nearest.ts';
import { InvalidInputError } from '../errors.ts';
import { type RecipeKey, recipeKey, recipeKeys, type RecipeSection, recipeSections } from './keys.ts';

export type Explanation =
  | { readonly type: 'key'; readonly key: RecipeKey }
  | { readonly type: 'section'; readonly section: RecipeSection; readonly keys: readonly RecipeKey[] };

/** A key, or a section with all its keys. Throws InvalidInputError with the nearest path. */
export function explain(path: string): Explanation {
  const key = recipeKey(path);
  if (key !== undefined) return { type: 'key', key };
  const section = recipeSections.find((entry) => entry.path === path);
  if (section === undefined) throw unknownPath(path);
  return { type: 'section', section, keys: recipeKeys.filter((entry) => entry.path.startsWith(`${path}.`)) };
}

function unknownPath(path: string): InvalidInputError {
  const paths = [...recipeSections, ...recipeKeys].map((entry) => entry.path);
  const sameName = paths.find((other) => other.endsWith(`.${path}`));
  const near = sameName ?? nearest(path, paths);
  return new InvalidInputError(`no recipe key "${path}"`, {
    hint: near === undefined ? 'petrel recipe explain lists all keys' : `did you mean ${near}?`,
  });
}
