/** Option values as commands want them. Each throws InvalidInputError that names the option. */
import { InvalidInputError } from '../core/errors.ts';
import { showValue } from '../core/recipe/show-value.ts';
import type { CommandInput } from './command.ts';

export function textOption(input: CommandInput, name: string): string | undefined {
  const value = input.options[name];
  return typeof value === 'string' ? value : undefined;
}

export function flag(input: CommandInput, name: string): boolean {
  return input.options[name] === true;
}

export function listOption(input: CommandInput, name: string): readonly string[] {
  const value = input.options[name];
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** An integer in a range; undefined when the option was not given. */
export function integerOption(
  input: CommandInput,
  name: string,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const text = textOption(input, name);
  if (text === undefined) return undefined;
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `>= ${least}` : `from ${least} to ${most}`;
  throw new InvalidInputError(`--${kebab(name)}: expected an integer ${range}, got ${showValue(text)}`);
}

/** The word at a position that the command's `arguments` make sure of. */
export function word(input: CommandInput, index: number): string {
  const value = input.words[index];
  if (value === undefined) throw new InvalidInputError('a word is missing on the command line');
  return value;
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
