/**
 * A small strict reader of JSON values: a shape both declares what a field must be and reads it. Unknown fields are
 * allowed.
 */

export type Shape<T> = (value: unknown, at: string) => T;
export type Of<S> = S extends Shape<infer T> ? T : never;

/** The error says which field differs from its shape. */
export class NotOfShape extends Error {}

function shape<T>(expected: string, is: (value: unknown) => value is T): Shape<T> {
  return (value, at) => {
    if (is(value)) return value;
    throw new NotOfShape(`${at}: expected ${expected}, found ${JSON.stringify(value)?.slice(0, 60) ?? 'nothing'}`);
  };
}

export const text = shape('a text', (value) => typeof value === 'string');
export const flag = shape('true or false', (value) => typeof value === 'boolean');
export const number = shape(
  'a number',
  (value): value is number => typeof value === 'number' && Number.isFinite(value),
);
export const integer = shape('an integer', (value): value is number => Number.isSafeInteger(value));
export const count = shape(
  'a whole number from 0',
  (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0,
);
export const positive = shape(
  'a whole number from 1',
  (value): value is number => Number.isSafeInteger(value) && (value as number) >= 1,
);
export const digest = shape(
  'a SHA-256 digest',
  (value): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value),
);
/** Values that JSON numbers cannot hold are stored as text. */
export const anyNumber = shape(
  'a number',
  (value): value is number | string =>
    (typeof value === 'number' && Number.isFinite(value)) ||
    value === 'NaN' ||
    value === 'Infinity' ||
    value === '-Infinity',
);
export const tree = shape(
  'an object',
  (value): value is Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
);

export function oneOf<const T extends string>(...words: readonly T[]): Shape<T> {
  return shape(words.join(' or '), (value): value is T => words.includes(value as T));
}

export function exactly<const T extends number>(wanted: T): Shape<T> {
  return shape(String(wanted), (value): value is T => value === wanted);
}

export function list<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw new NotOfShape(`${at}: expected a list, found ${typeof value}`);
    return value.map((one, i) => item(one, `${at}[${i}]`));
  };
}

/** An object whose fields all have one shape. */
export function named<T>(item: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, at) =>
    Object.fromEntries(Object.entries(tree(value, at)).map(([name, one]) => [name, item(one, `${at}.${name}`)]));
}

/** A record of format 2, or one of format 1, of which `upgrade` makes format 2. */
export function inFormats<A, B>(first: Shape<A>, upgrade: (record: A) => B, second: Shape<B>): Shape<B> {
  return (value, at) => (tree(value, at)['format'] === 1 ? upgrade(first(value, at)) : second(value, at));
}

export function optional<T>(inner: Shape<T>): Shape<T | undefined> {
  return (value, at) => (value === undefined ? undefined : inner(value, at));
}

export function nullable<T>(inner: Shape<T>): Shape<T | null> {
  return (value, at) => (value === null ? null : inner(value, at));
}

export function either<A, B>(one: Shape<A>, other: Shape<B>): Shape<A | B> {
  return (value, at) => {
    try {
      return one(value, at);
    } catch {
      return other(value, at);
    }
  };
}

export function object<F extends Readonly<Record<string, Shape<unknown>>>>(
  fields: F,
): Shape<{ readonly [K in keyof F]: Of<F[K]> }> {
  return (value, at) => {
    const found = tree(value, at);
    const read = Object.entries(fields).map(
      ([name, field]) => [name, field(Object.hasOwn(found, name) ? found[name] : undefined, `${at}.${name}`)] as const,
    );
    return Object.fromEntries(read.filter(([, field]) => field !== undefined)) as { readonly [K in keyof F]: Of<F[K]> };
  };
}
