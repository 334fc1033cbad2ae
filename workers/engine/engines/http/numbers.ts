/** What a server answers to a fixed prompt, greedily, and when two such answers are of the same weights. */
import { at } from '../../../../core/at.ts';

export interface Numbers {
  readonly tokens: readonly number[];
  readonly logProbs: readonly number[];
}

/** Mean difference of log-probs from which on the weights are not those that were loaded; bf16 rounds to 3 digits. */
const tolerance = 0.1;

/** Says whether two answers are equal to the bit. */
export const isSame = (one: Numbers, other: Numbers): boolean =>
  one.tokens.every((token, t) => token === other.tokens[t]) &&
  one.logProbs.every((value, t) => value === other.logProbs[t]);

/**
 * Says whether two answers may be of the same weights. Of two tokens that are equally likely, rounding chooses one:
 * their log-probs are near each other, and what follows them is of different prompts and says nothing.
 */
export function isNear(one: Numbers, other: Numbers): boolean {
  const differs = one.tokens.findIndex((token, t) => token !== other.tokens[t]);
  const compared = differs < 0 ? one.logProbs : one.logProbs.slice(0, differs + 1);
  const apart = compared.reduce((sum, value, t) => sum + Math.abs(value - at(other.logProbs, t)), 0);
  return apart / compared.length <= tolerance;
}

/**
 * Says whether the answers to several prompts may be of the same weights, the tokens of one side numbered in another
 * order. A head that stays in its own order gives another first token to each prompt, as likely as the right one.
 */
export const areNear = (some: readonly Numbers[], others: readonly Numbers[]): boolean =>
  some.every((one, i) => isNear(one, at(others, i))) &&
  some.some((one, i) => one.tokens[0] === at(others, i).tokens[0]);
