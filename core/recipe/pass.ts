/** Tokens of one forward pass: several processes may take a share of them each. */
import type { Recipe } from './schema.ts';

type Divided = Pick<Recipe, 'actor' | 'trainer'>;

const sharesOf = ({ trainer }: Pick<Divided, 'trainer'>): number => trainer.ulysses_sequence_parallel_size;

/** `limit`: tokens that each process takes, `actor.ppo_max_token_len_per_gpu` if none is given. */
export const tokensOfPass = (recipe: Divided, limit = recipe.actor.ppo_max_token_len_per_gpu): number =>
  limit * sharesOf(recipe);

/** The smallest limit with which a pass takes so many tokens. */
export const limitFor = (tokens: number, recipe: Pick<Divided, 'trainer'>): number =>
  Math.ceil(tokens / sharesOf(recipe));
