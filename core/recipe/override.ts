/**
 * Overrides on the command line: the part of Hydra's grammar that people type.
 *
 *   a.b=v    set      +a.b=v   the same (Hydra users type it for new keys)      ~a.b   back to the default
 *   v: number, true, false, null, 'text', "text", [v, v], {name: v}, or bare text
 */
import { removeAt, setAt, type Tree } from './merge.ts';
import { overrideError } from './override-error.ts';
import { parseOverrideValue } from './override-value.ts';

export type Override =
  | { readonly type: 'set'; readonly path: readonly string[]; readonly value: unknown; readonly source: string }
  | { readonly type: 'remove'; readonly path: readonly string[]; readonly source: string };

/** Throws InvalidInputError with what was expected and the position in the argument. */
export function parseOverride(source: string): Override {
  const removal = /^~([^=]+)$/.exec(source);
  if (removal !== null) return { type: 'remove', path: parsePath(removal[1] ?? '', source), source };
  const equals = source.indexOf('=');
  if (equals < 0) throw overrideError(source, source.length, 'expected key=value');
  const name = source.slice(0, equals);
  if (name.startsWith('~')) throw overrideError(source, equals, 'expected only a key after "~"');
  const path = parsePath(name.replace(/^\+{1,2}/, ''), source);
  return { type: 'set', path, value: parseOverrideValue(source, equals + 1), source };
}

/** Applies overrides in order; later ones win. */
export function applyOverrides(tree: Tree, overrides: readonly Override[]): Tree {
  return overrides.reduce(
    (result, override) =>
      override.type === 'set' ? setAt(result, override.path, override.value) : removeAt(result, override.path),
    tree,
  );
}

function parsePath(text: string, source: string): string[] {
  const names = text.split('.');
  const bad = names.findIndex((name) => !/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name));
  if (bad >= 0) {
    const at = source.indexOf(text) + names.slice(0, bad).join('.').length + (bad > 0 ? 1 : 0);
    throw overrideError(source, at, 'expected a key such as actor.optim.lr');
  }
  return names;
}
