/** The recipe of a run with some keys changed: what differs, and what that means for its history. */
import type { Recipe, RecipeChange } from '../../core/recipe/index.ts';
import type { RunInputs } from '../../core/records/schema.ts';

export interface ChangedRecipe {
  readonly recipe: Recipe;
  readonly inputs: RunInputs;
  /** The user's scorer module when it is new. */
  readonly module?: Uint8Array;
  readonly changes: readonly RecipeChange[];
  /** Those that change the experiment. */
  readonly asks: readonly RecipeChange[];
}
