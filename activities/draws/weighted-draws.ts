/** Draws the prompts of a batch from more, by weights. */
import { at } from '../../core/at.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { Draw } from '../../core/rl/draws.ts';
import { chooseByWeight } from '../../core/rl/weighted-choice.ts';

export interface Weighed {
  readonly recipe: Recipe;
  readonly draws: (cursor: number, leavesOut?: (draw: Draw) => boolean) => readonly Draw[];
  readonly candidates?: (cursor: number) => readonly Draw[];
}

/** Second word of the key of the random numbers. Sampling responses uses 1 and 2, policy filtration 3. */
const choicePurpose = 4;

/** The context whose draws are chosen among its draws. */
export function drawnByWeight<Context extends Weighed>(context: Context, weightOf: (draw: Draw) => number): Context {
  const { recipe, draws: candidates } = context;
  const key = [recipe.seed >>> 0, choicePurpose] as const;
  return {
    ...context,
    candidates: (cursor) => candidates(cursor),
    draws: (cursor) => {
      const all = candidates(cursor);
      const numbers = all.map(({ draw }) => draw);
      return chooseByWeight(all.map(weightOf), numbers, recipe.data.train_batch_size, key).map((place) =>
        at(all, place),
      );
    },
  };
}
