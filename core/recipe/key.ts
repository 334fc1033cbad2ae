/**
 * How a recipe's keys are declared: value schema, default and documentation in one place. The JSON Schema, `recipe
 * explain`, the rules of resume and the error texts are all derived from it.
 */
import { modulePathPattern } from '../module-path.ts';
import type { ModulePath } from '../module-path.ts';
import { z } from 'zod';

/**
 * What a resumed run may do with a changed value.
 * free: takes effect · ask: changes the experiment, needs a yes · fixed: another run, refused.
 */
export type ChangeClass = 'free' | 'ask' | 'fixed';

export interface KeyDoc {
  /** One line: what the key means. */
  readonly doc: string;
  /** Unit of a number: `tokens`, `prompts`, `s`, `MiB`. */
  readonly unit?: string;
  readonly change: ChangeClass;
  /** verl's name, if it differs from petrel's by more than the `actor_rollout_ref.` wrapper. */
  readonly verl?: string;
  /**
   * The value is the path of a file or folder; a relative one is relative to the recipe's folder. model: the value may
   * also be a hub name, so only a text that starts with ".", "/" or "~" is a path. module: just so, beside built-in
   * names.
   */
  readonly pointsTo?: 'file' | 'model' | 'module';
  /** Default with `kind: sft`, `dpo` and `rm`, if it differs. */
  readonly sftDefault?: unknown;
}

export interface SectionDoc {
  readonly doc: string;
}

/** Docs of single keys, by their schema. */
export const keyDocs = z.registry<KeyDoc>();

/** Docs of sections (objects whose keys are documented themselves), by their schema. */
export const sectionDocs = z.registry<SectionDoc>();

/** A key with a default. */
export function key<S extends z.ZodType>(schema: S, fallback: z.output<S>, doc: KeyDoc): z.ZodDefault<S> {
  const withDefault = z._default(schema, fallback as z.core.util.NoUndefined<z.output<S>>);
  keyDocs.add(withDefault, doc);
  return withDefault;
}

/** A key that every recipe must give. */
export function requiredKey<S extends z.ZodType>(schema: S, doc: KeyDoc): S {
  const own = schema.clone() as S;
  keyDocs.add(own, doc);
  return own;
}

/** An object of keys. An unknown key in it is an error; the whole section may be omitted. */
export function section<const Shape extends z.core.$ZodShape>(
  doc: string,
  shape: Shape,
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  const object = z.strictObject(shape) as z.ZodObject<Shape, z.core.$strict>;
  const optional = z.prefault(object, {} as z.input<typeof object>);
  sectionDocs.add(optional, { doc });
  return optional;
}

const modulePath = z.string().regex(modulePathPattern, { abort: true }) as unknown as z.ZodType<ModulePath, ModulePath>;

/** A module of the user's own where there is no built-in one. */
export const moduleOrNull = z.union([modulePath, z.null()]);

/** A built-in name, or the path of a module of the user's own. */
export const nameOrModule = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.union([z.enum(names), modulePath]);

export const count = z.int().positive();
export const countOrZero = z.int().nonnegative();
export const fraction = z.number().min(0).max(1);
export const text = z.string().min(1);
