/** The table of all keys of a recipe, read from the schema. */
import { z } from 'zod';
import { type KeyDoc, keyDocs, sectionDocs } from './key.ts';
import { recipeSchema } from './schema.ts';
import { typeText } from './type-text.ts';

export interface RecipeKey extends KeyDoc {
  /** Dotted: `actor.optim.lr`. */
  readonly path: string;
  /** Type in words: `integer >= 1, or null`. */
  readonly type: string;
  readonly required: boolean;
  readonly default?: unknown;
}

export interface RecipeSection {
  readonly path: string;
  readonly doc: string;
}

/** Every key, in the order of the schema. */
export const recipeKeys: readonly RecipeKey[] = collectKeys(recipeSchema, '');

const keyByPath = new Map(recipeKeys.map((entry) => [entry.path, entry]));

/** The key at a dotted path; undefined when there is none (also for sections). */
export function recipeKey(path: string): RecipeKey | undefined {
  return keyByPath.get(path);
}

/** Every section, in the order of the schema. */
export const recipeSections: readonly RecipeSection[] = collectSections(recipeSchema, '');

/** The names directly under a section ('' = the top). */
export function siblings(sectionPath: string): string[] {
  const prefix = sectionPath === '' ? '' : `${sectionPath}.`;
  const below = [...recipeKeys, ...recipeSections].filter((entry) => entry.path.startsWith(prefix));
  return [...new Set(below.map((entry) => entry.path.slice(prefix.length).split('.')[0] ?? ''))];
}

function collectKeys(object: z.ZodObject, prefix: string): RecipeKey[] {
  return Object.entries(object.shape).flatMap(([name, schema]) => {
    const path = prefix + name;
    const inner = sectionObject(schema);
    if (inner !== undefined) return collectKeys(inner, `${path}.`);
    return [describeKey(path, schema as z.ZodType)];
  });
}

function describeKey(path: string, schema: z.ZodType): RecipeKey {
  const doc = keyDocs.get(schema);
  if (doc === undefined) throw new Error(`recipe key ${path} has no doc`);
  return {
    path,
    ...doc,
    // Made when it is read: only help and errors show types, and every command starts by collecting the keys.
    get type() {
      return typeText(schema);
    },
    ...(schema instanceof z.ZodDefault ? { required: false, default: schema.def.defaultValue } : { required: true }),
  };
}

function collectSections(object: z.ZodObject, prefix: string): RecipeSection[] {
  return Object.entries(object.shape).flatMap(([name, schema]) => {
    const inner = sectionObject(schema);
    if (inner === undefined) return [];
    const path = prefix + name;
    return [{ path, doc: sectionDocs.get(schema as z.ZodType)?.doc ?? '' }, ...collectSections(inner, `${path}.`)];
  });
}

function sectionObject(schema: unknown): z.ZodObject | undefined {
  if (!(schema instanceof z.ZodPrefault)) return undefined;
  const inner = schema.def.innerType;
  return inner instanceof z.ZodObject ? inner : undefined;
}
