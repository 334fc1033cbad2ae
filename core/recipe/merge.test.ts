import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTree, mergeTrees, removeAt, setAt, type Tree } from './merge.ts';

/** Lower-case names are leaves, upper-case ones mappings: as in a recipe, a name has the same kind in all layers. */
const leaves = fc.dictionary(
  fc.constantFrom('a', 'b', '__proto__'),
  fc.oneof(fc.integer(), fc.array(fc.integer(), { maxLength: 2 })),
  { noNullPrototype: true, maxKeys: 2 },
);
const tree = fc
  .letrec((tie) => ({
    tree: fc
      .tuple(
        leaves,
        fc.dictionary(fc.constantFrom('A', 'B'), fc.oneof({ maxDepth: 2 }, leaves, tie('tree')), {
          noNullPrototype: true,
          maxKeys: 2,
        }),
      )
      .map(([low, high]) => Object.fromEntries([...Object.entries(low), ...Object.entries(high)])),
  }))
  .tree.map((value) => value as Tree);

const path = fc.array(fc.constantFrom('A', 'B', 'c'), { minLength: 1, maxLength: 3 });

describe('mergeTrees', () => {
  it('merges objects and replaces lists', () => {
    expect(mergeTrees({ a: { x: 1, y: [1, 2] } }, { a: { y: [3] }, b: null })).toEqual({
      a: { x: 1, y: [3] },
      b: null,
    });
  });

  it('is associative, and an empty layer changes nothing', () => {
    fc.assert(
      fc.property(tree, tree, tree, (a, b, c) => {
        expect(mergeTrees(mergeTrees(a, b), c)).toEqual(mergeTrees(a, mergeTrees(b, c)));
        expect(mergeTrees(a, {})).toEqual(a);
        expect(mergeTrees({}, a)).toEqual(a);
        expect(mergeTrees(a, a)).toEqual(a);
      }),
    );
  });
});

describe('setAt and removeAt', () => {
  it('cancel each other at a free path', () => {
    fc.assert(
      fc.property(tree, path, (before, at) => {
        const set = setAt(before, at, 7);
        expect(at.reduce<unknown>((value, name) => (isTree(value) ? value[name] : undefined), set)).toBe(7);
        expect(setAt(set, at, 7)).toEqual(set);
        expect(removeAt(removeAt(set, at), at)).toEqual(removeAt(set, at));
      }),
    );
  });
});
