import { groundTruthText } from './ground-truth.ts';
import type { Scorer } from './types.ts';

/** 1 when the whole response equals the ground truth, ignoring surrounding white space; else 0. */
export const exact: Scorer = (input) => {
  const acc = input.solutionStr.trim() === groundTruthText('exact', input).trim();
  return { score: Number(acc), acc };
};
