/** The two guarantees of a run, as `plan` prints them. */
import type { Recipe } from './schema.ts';

export interface Promises {
  /** Equal records give equal weights. Always true. */
  readonly replay: true;
  /** A killed run and an undisturbed one end with the same weights, to the bit. */
  readonly endToEnd: boolean;
  /** The reason for the value of `endToEnd`. */
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
