/** Compares types of fields, for schemas and the types that describe the same message. Types only. */

/** `true` when two types have the same fields, at every depth; else the names of the fields that differ. */
export type Same<A, B> = [Drifted<A, B>] extends [never] ? true : Drifted<A, B>;

/** Dotted names of the fields that only one of two types has. What a field holds is the schema's business. */
type Drifted<A, B, Path extends string = ''> = {
  [K in FieldOf<A> | FieldOf<B>]: K extends FieldOf<A>
    ? K extends FieldOf<B>
      ? Inner<ValueOf<A, K>, ValueOf<B, K>, `${Path}${K}`>
      : `${Path}${K} (only in the schema)`
    : `${Path}${K} (only in the type)`;
}[FieldOf<A> | FieldOf<B>];

type Inner<A, B, Path extends string> = [IsFields<A>, IsFields<B>] extends [true, true]
  ? Drifted<A, B, `${Path}.`>
  : never;

type Value<T> = Exclude<T, undefined>;
type ValueOf<T, K extends string> = Value<T extends { readonly [P in K]?: infer V } ? V : never>;

/** Is it one object with named fields? Texts with a brand, lists, dictionaries and unions are compared no further. */
type IsFields<T> = [T] extends [string | number | boolean | readonly unknown[]]
  ? false
  : string extends keyof T
    ? false
    : IsUnion<T> extends true
      ? false
      : true;

type IsUnion<T, U = T> = T extends unknown ? ([U] extends [T] ? false : true) : never;

type FieldOf<T> = Extract<keyof T, string>;
