/** The two promises of a run, as `plan` prints them. */
import type { Recipe } from './schema.ts';

export interface Promises {
  /** Same records, same weights: always. */
  readonly replay: true;
  /** Killed or undisturbed: the same final weights to the bit. */
  readonly endToEnd: boolean;
  /** Why not end to end; or what it rests on. */
  readonly because: string;
}

/** `scorersDeterministic`: every scorer of the run is declared to depend on its arguments only. */
export function promises(recipe: Recipe, scorersDeterministic: boolean): Promises {
  if (recipe.deterministic === false) {
    return { replay: true, endToEnd: false, because: 'deterministic is false: kernels are chosen for speed' };
  }
  if (!scorersDeterministic) {
    return { replay: true, endToEnd: false, because: 'a scorer is not declared deterministic' };
  }
  return { replay: true, endToEnd: true, because: 'the engine and every scorer are declared deterministic' };
}
