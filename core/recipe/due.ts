/** What a recipe does every N iterations. */
import type { Recipe } from './schema.ts';

/** True for every `every`th iteration; never where `every` is 0 or less. */
export function isDue(iteration: number, every: number): boolean {
  return every > 0 && iteration % every === 0;
}

/** Is the policy validated after this iteration? `val_before_train` decides for the base, iteration 0. */
export function isValidationDue(recipe: Recipe, iteration: number, iterations: number): boolean {
  const { trainer } = recipe;
  if (iteration === 0) return trainer.val_before_train || trainer.val_only;
  return isDue(iteration, trainer.test_freq) || iteration === iterations;
}
