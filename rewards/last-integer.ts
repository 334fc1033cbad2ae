import type { Scorer } from './types.ts';

/** 1 when the last integer in the response equals the ground truth as a number; commas inside it are allowed. */
export const lastInteger: Scorer = ({ solutionStr, groundTruth }) => {
  const last = lastIntegerIn(solutionStr);
  const acc = last !== undefined && last === lastIntegerIn(String(groundTruth));
  return { score: Number(acc), acc };
};

/** A minus is a sign only if no digit or letter is before it: "4-2" ends in 2, "= -2" in −2. */
export function lastIntegerIn(text: string): bigint | undefined {
  const matches = [...text.matchAll(/(?<![\p{L}\p{N}])-?\d+(?:,\d{3})*|\d+(?:,\d{3})*/gu)];
  const last = matches.at(-1)?.[0];
  return last === undefined ? undefined : BigInt(last.replaceAll(',', ''));
}
