/**
 * Python's rules for matching arguments to parameters, for the functions, methods, filters and tests of this folder.
 */
import { refuse } from './errors.ts';
import { type Keywords, Native, type Value, numberOf, textOf, truth, typeName, none } from './values.ts';

/** Arguments by parameter; undefined when not given. */
export type Bound = readonly (Value | undefined)[];

/**
 * Parameters as text: `value, default_value='', boolean` are `['value', 'default_value?', 'boolean?']`; `?` = optional.
 */
export function bind(name: string, parameters: readonly string[], args: readonly Value[], keywords: Keywords): Bound {
  const names = parameters.map((parameter) => parameter.replace('?', ''));
  if (args.length > names.length)
    return refuse(`${name}() takes ${names.length} arguments but ${args.length} were given`);
  const bound: (Value | undefined)[] = names.map((_, i) => args[i]);
  for (const [keyword, value] of keywords) {
    const index = names.indexOf(keyword);
    if (index < 0) return refuse(`${name}() got an unexpected keyword argument '${keyword}'`);
    if (bound[index] !== undefined) return refuse(`${name}() got multiple values for argument '${keyword}'`);
    bound[index] = value;
  }
  const missing = parameters.findIndex((parameter, i) => !parameter.endsWith('?') && bound[i] === undefined);
  if (missing >= 0) return refuse(`${name}() missing required argument: '${names[missing]}'`);
  return bound;
}

export function native(name: string, parameters: readonly string[], body: (bound: Bound) => Value): Native {
  return new Native(name, (args, keywords) => body(bind(name, parameters, args, keywords)));
}

/** A whole number; None and a missing argument become the fallback. */
export function integerArgument(value: Value | undefined, fallback: number): number {
  if (value === undefined || value === none) return fallback;
  const number = numberOf(value);
  return typeof number === 'bigint'
    ? Number(number)
    : refuse(`'${typeName(value)}' object cannot be interpreted as an integer`);
}

/** A str; None and a missing argument become undefined. */
export function textArgument(value: Value | undefined): string | undefined {
  if (value === undefined || value === none) return undefined;
  return textOf(value) ?? refuse(`expected str, not ${typeName(value)}`);
}

export function requiredText(value: Value | undefined): string {
  return textArgument(value) ?? refuse('expected str, not NoneType');
}

export function flagArgument(value: Value | undefined): boolean {
  return value !== undefined && truth(value);
}
