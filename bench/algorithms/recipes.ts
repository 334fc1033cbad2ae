/** The recipes of examples/10-algorithms. Each needs an entry. */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { loadRecipe } from '../../api/recipes/recipe-file.ts';
import { InvalidInputError, PetrelError } from '../../core/errors.ts';
import { runIssues } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { ENTRIES } from './entries.ts';
import type { AlgorithmEntry } from './entry.ts';

const folder = join(packageRoot(), 'examples/10-algorithms');

export interface AlgorithmRecipe {
  /** Name of the file without `.yaml`. */
  readonly name: string;
  readonly file: string;
  /** Absent: nobody has said what its run must show. */
  readonly entry: AlgorithmEntry | undefined;
}

/** Ascending by name. `only`: names of recipes; none: all. Throws InvalidInputError for a name that no recipe has. */
export function algorithmRecipes(only: readonly string[] = []): AlgorithmRecipe[] {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => basename(file, '.yaml'))
    .sort();
  const lost = only.find((name) => !names.includes(name));
  if (lost !== undefined)
    throw new InvalidInputError(`there is no recipe ${lost} in examples/10-algorithms`, {
      hint: `there are ${names.join(', ')}`,
    });
  return names
    .filter((name) => only.length === 0 || only.includes(name))
    .map((name) => ({
      name,
      file: join(folder, `${name}.yaml`),
      entry: Object.hasOwn(ENTRIES, name) ? ENTRIES[name] : undefined,
    }));
}

/** The resolved recipe, or why it cannot be run. */
export function resolved(file: string): { readonly recipe: Recipe } | { readonly refused: string } {
  try {
    const { recipe } = loadRecipe(file, [], folder);
    const issues = runIssues(recipe);
    if (issues.length === 0) return { recipe };
    return { refused: issues.map(({ path, message }) => `${path}: ${message}`).join('; ') };
  } catch (error) {
    if (!(error instanceof PetrelError)) throw error;
    return { refused: error.message };
  }
}
