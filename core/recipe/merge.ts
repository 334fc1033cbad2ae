/** Layers of a recipe: later ones win, objects are merged, other values (lists too) are replaced. */

export type Tree = { readonly [name: string]: unknown };

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function mergeTrees(below: Tree, above: Tree): Tree {
  const merged: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const under = Object.hasOwn(merged, name) ? merged[name] : undefined;
    define(merged, name, isTree(under) && isTree(value) ? mergeTrees(under, value) : value);
  }
  return merged;
}

/** The tree with `value` at a path; replaces what is in the way. */
export function setAt(tree: Tree, path: readonly string[], value: unknown): Tree {
  const [name, ...rest] = path;
  if (name === undefined) return tree;
  const under = Object.hasOwn(tree, name) ? tree[name] : undefined;
  const next = rest.length === 0 ? value : setAt(isTree(under) ? under : {}, rest, value);
  const changed: Record<string, unknown> = { ...tree };
  define(changed, name, next);
  return changed;
}

/** The tree without the value at a path. */
export function removeAt(tree: Tree, path: readonly string[]): Tree {
  const [name, ...rest] = path;
  if (name === undefined || !Object.hasOwn(tree, name)) return tree;
  if (rest.length === 0) return Object.fromEntries(Object.entries(tree).filter(([other]) => other !== name));
  const under = tree[name];
  return isTree(under) ? setAt(tree, [name], removeAt(under, rest)) : tree;
}

/** A plain assignment would treat `__proto__` specially. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}
