import { badGroundTruth, groundTruthText } from './ground-truth.ts';
import type { Scorer, ScorerInput } from './types.ts';

/** 1 when the last integer in the response equals the ground truth as a number; commas inside it are allowed. */
export const lastInteger: Scorer = (input) => {
  const acc = lastIntegerIn(input.solutionStr) === wantedInteger(input);
  return { score: Number(acc), acc };
};

/** @throws InvalidInputError for a ground truth without an integer: no response could be right. */
export function wantedInteger(input: ScorerInput): bigint {
  const wanted = lastIntegerIn(groundTruthText('last_integer', input));
  if (wanted === undefined) throw badGroundTruth('last_integer', input, 'a text with an integer');
  return wanted;
}

/** A minus is a sign only if no digit or letter is before it: "4-2" ends in 2, "= -2" in −2. */
export function lastIntegerIn(text: string): bigint | undefined {
  const matches = [...text.matchAll(/(?<![\p{L}\p{N}])-?\d+(?:,\d{3})*|\d+(?:,\d{3})*/gu)];
  const last = matches.at(-1)?.[0];
  return last === undefined ? undefined : BigInt(last.replaceAll(',', ''));
}
