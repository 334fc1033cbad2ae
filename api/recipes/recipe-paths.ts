/** Paths in a recipe mean files; where the recipe lies must not matter once it is loaded. */
import { resolve } from 'node:path';
import { isTree, type KeyDoc, recipeKeys, setAt, type Tree } from '../../core/recipe/index.ts';

/** The tree with every relative path made absolute, from `folder`. URLs, env:NAME and hub names stay. */
export function absolutePaths(tree: Tree, folder: string, home: string): Tree {
  return recipeKeys
    .filter((key) => key.pointsTo !== undefined)
    .reduce((result, key) => {
      const path = key.path.split('.');
      const value = path.reduce<unknown>(
        (at, name) => (isTree(at) && Object.hasOwn(at, name) ? at[name] : undefined),
        result,
      );
      const place = (one: unknown) =>
        typeof one === 'string' && isPath(one, key.pointsTo) ? toAbsolute(one, folder, home) : one;
      return value === undefined ? result : setAt(result, path, Array.isArray(value) ? value.map(place) : place(value));
    }, tree);
}

function isPath(value: string, pointsTo: KeyDoc['pointsTo']): boolean {
  if (value === '' || /^[a-z][a-z0-9+.-]*:/i.test(value)) return false;
  return pointsTo === 'file' || /^[./~]/.test(value);
}

function toAbsolute(path: string, folder: string, home: string): string {
  return /^~(?=\/|$)/.test(path) ? resolve(home, `.${path.slice(1)}`) : resolve(folder, path);
}
