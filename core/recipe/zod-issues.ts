/** Converts zod's issues to recipe issues. */
import type { z } from 'zod';
import { nearestRunName } from '../ids.ts';
import { nearest } from '../nearest.ts';
import { showValue } from './show-value.ts';
import type { RecipeIssue } from './issues.ts';
import { recipeKey, recipeSections } from './keys.ts';
import { unknownKey } from './unknown-key.ts';

/** `input`: the parsed value, from which found values are quoted. */
export function fromZodIssue(issue: z.core.$ZodIssue, input: unknown): RecipeIssue[] {
  const names = issue.path.map(String);
  const path = names.join('.');
  if (issue.code === 'unrecognized_keys') return unknownKeys(path, issue.keys);
  const found = valueAt(input, names);
  if (found === undefined) return [{ path, message: 'is required', ...expectation(path) }];
  const received = showValue(found);
  if (recipeSections.some((entry) => entry.path === path)) {
    return [{ path, message: `expected a mapping of keys, got ${received}`, expected: 'mapping', received }];
  }
  const expected = expectation(path).expected ?? innerExpectation(issue);
  const message = issue.code === 'custom' || issue.code === 'invalid_format' ? issue.message : `expected ${expected}`;
  const hint = path === 'name' ? nameHint(found) : moduleHint(path, issue, found);
  return [{ path, message: `${message}, got ${received}`, expected, received, ...(hint !== undefined && { hint }) }];
}

/** Unknown keys of one section that are looked at. So many more mean that the file is no recipe. */
const mostUnknown = 50;

function unknownKeys(path: string, names: readonly string[]): RecipeIssue[] {
  const issues = names.slice(0, mostUnknown).map((name) => unknownKey(path, name));
  const more = names.length - mostUnknown;
  return more <= 0 ? issues : [...issues, { path, message: `and ${more} more unknown keys: this is no recipe` }];
}

/** One line of a recipe. `recipe-issues.ts` shows it as an override when the name came from the command line. */
function nameHint(found: unknown): string | undefined {
  const name = nearestRunName(String(found));
  return name === undefined ? undefined : `name: ${name}`;
}

/** A hint for a key whose value is a built-in name or a path. */
function moduleHint(path: string, issue: z.core.$ZodIssue, found: unknown): string | undefined {
  if (recipeKey(path)?.pointsTo !== 'module' || issue.code !== 'invalid_union' || typeof found !== 'string')
    return undefined;
  if (/[./\\]/.test(found)) return 'a path begins with ./, ../, / or ~/, and ends in .ts, .mts, .js or .mjs';
  const names = issue.errors.flat().flatMap((one) => (one.code === 'invalid_value' ? one.values.map(String) : []));
  const near = nearest(found, names);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

/**
 * What is expected at a place inside a key's value (an item of a list, a pool of the fleet), which is not in the table
 * of keys.
 */
function innerExpectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_value':
      return `one of ${issue.values.map(String).join(', ')}`;
    case 'invalid_type':
      return issue.expected;
    case 'invalid_key':
      return 'a name of a-z, 0-9 and "-"';
    case 'too_small':
      return issue.origin === 'array' || issue.origin === 'string' ? 'something in it' : `>= ${issue.minimum}`;
    default:
      return issue.message;
  }
}

function expectation(path: string): { readonly expected?: string; readonly hint?: string } {
  const entry = recipeKey(path);
  return entry === undefined ? {} : { expected: entry.type, hint: entry.doc };
}

function valueAt(input: unknown, names: readonly string[]): unknown {
  let value = input;
  for (const name of names) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
