/**
 * Hydra's interpolations in values: `${trainer.project_name}`, `${oc.env:HOME}`, `${oc.env:NAME,default}`,
 * `${oc.select:a.b,default}`, `${oc.decode:…}`, `${.sibling}`. A variable has the type that its text looks like,
 * because verl's typed configuration converts it. Others, and references to keys that are not set, make the value
 * unknown.
 */
import { InvalidInputError } from '../../../../core/errors.ts';
import { parseOverrideValue } from '../../../../core/recipe/override-value.ts';

/** A value, or why it is not known. */
export type Resolved =
  | { readonly type: 'value'; readonly value: unknown }
  | { readonly type: 'unknown'; readonly why: string };

export interface Scope {
  /** The value of a key as it is written; undefined when the input does not set it. */
  readonly valueOf: (path: string) => unknown;
  readonly env: ReadonlyMap<string, string>;
}

const mostDepth = 20;
const mostLength = 100_000;

/** Resolves the texts in a value of the key `path`. */
export function interpolate(value: unknown, path: string, scope: Scope): Resolved {
  return resolve(value, path, scope, 0);
}

function resolve(value: unknown, path: string, scope: Scope, depth: number): Resolved {
  if (depth > mostDepth) return { type: 'unknown', why: 'its references go in a circle' };
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => resolve(item, path, scope, depth + 1));
    const unknown = items.find((item) => item.type === 'unknown');
    return unknown ?? { type: 'value', value: items.map((item) => (item.type === 'value' ? item.value : undefined)) };
  }
  return typeof value === 'string' && value.includes('${')
    ? resolveText(value, path, scope, depth)
    : { type: 'value', value };
}

/** A text that is one interpolation has the value's type; in a longer text the values are joined. */
function resolveText(text: string, path: string, scope: Scope, depth: number): Resolved {
  const inner = /\$\{([^{}]*)\}/;
  let rest = text;
  for (let round = 0; round < mostDepth; round += 1) {
    const found = inner.exec(rest);
    if (found === null) break;
    const one = reference((found[1] ?? '').trim(), path, scope, depth);
    if (one.type === 'unknown' || found[0] === rest) return one;
    if (typeof one.value === 'object' && one.value !== null)
      return { type: 'unknown', why: `${found[0]} is not a single value` };
    rest = rest.slice(0, found.index) + String(one.value) + rest.slice(found.index + found[0].length);
    if (rest.length > mostLength) return { type: 'unknown', why: 'it is too long' };
  }
  return rest.includes('${')
    ? { type: 'unknown', why: `"${text.slice(0, 60)}" is not understood` }
    : { type: 'value', value: rest };
}

function reference(source: string, path: string, scope: Scope, depth: number): Resolved {
  const resolver = /^([\w.]+):(.*)$/s.exec(source);
  if (resolver !== null) return byResolver(resolver[1] ?? '', resolver[2] ?? '', path, scope, depth);
  const target = absolute(source, path);
  if (target === undefined) return { type: 'unknown', why: `\${${source.slice(0, 60)}} is not understood` };
  const value = scope.valueOf(target);
  return value === undefined
    ? { type: 'unknown', why: `it refers to ${target}, which the input does not set` }
    : resolve(value, target, scope, depth + 1);
}

function byResolver(name: string, argument: string, path: string, scope: Scope, depth: number): Resolved {
  const [, first = '', , fallback] = /^([^,]*)(,(.*))?$/s.exec(argument) ?? [];
  const otherwise = (why: string): Resolved =>
    fallback === undefined ? { type: 'unknown', why } : parsed(fallback.trim());
  if (name === 'oc.env') {
    const variable = first.trim();
    const value = scope.env.get(variable) ?? (variable === 'HOME' ? '~' : undefined);
    return value === undefined ? otherwise(`it reads the variable ${variable} (--env ${variable}=…)`) : parsed(value);
  }
  if (name === 'oc.decode') return parsed(argument);
  if (name === 'oc.select') {
    const target = absolute(first.trim(), path);
    const value = target === undefined ? undefined : scope.valueOf(target);
    return value === undefined
      ? otherwise(`it refers to ${first}, which the input does not set`)
      : resolve(value, path, scope, depth + 1);
  }
  return { type: 'unknown', why: `\${${name}:…} is not understood` };
}

function parsed(text: string): Resolved {
  try {
    return { type: 'value', value: parseOverrideValue(text, 0) };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return { type: 'unknown', why: `"${text.slice(0, 60)}" is not understood` };
  }
}

/** `.x`: beside the key; `..x`: one level up. */
function absolute(source: string, path: string): string | undefined {
  const match = /^(\.*)([A-Za-z_][\w-]*(?:\.[\w-]+)*)$/.exec(source);
  if (match === null) return undefined;
  const dots = (match[1] ?? '').length;
  const names = path.split('.');
  if (dots > names.length) return undefined;
  const base = dots === 0 ? [] : names.slice(0, names.length - dots);
  return [...base, match[2] ?? ''].join('.');
}
