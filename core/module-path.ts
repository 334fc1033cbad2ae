/** A user's own module in a recipe, where a built-in name may stand too: `./my-loss.ts`. */

/** Endings of the files that are loaded. */
const endings = ['.ts', '.mts', '.js', '.mjs'] as const;

export type ModulePath = `./${string}` | `../${string}` | `/${string}` | `~/${string}`;

/** No built-in name begins with a dot, a slash or a tilde, so a misspelled name is never taken for a path. */
export const modulePathPattern = /^(?:\.{1,2}|~)?\/.*\.(?:m?ts|m?js)$/;

export const isModulePath = (value: string): value is ModulePath => modulePathPattern.test(value);

/** What a path looks like, for error texts and the reference of keys. */
export const modulePathText = `the path of a module of your own (./name${endings[0]}, also ${endings.slice(1).join(' ')})`;
