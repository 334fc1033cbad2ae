import type { Scorer } from './types.ts';

/** 1 when the whole response equals the ground truth, ignoring surrounding white space; else 0. */
export const exact: Scorer = ({ solutionStr, groundTruth }) => {
  const acc = solutionStr.trim() === String(groundTruth).trim();
  return { score: Number(acc), acc };
};
