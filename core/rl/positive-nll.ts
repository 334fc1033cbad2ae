/**
 * The loss on positive examples of VAPO (Yue et al. 2025, arXiv 2504.05118; not part of verl): imitation of the
 * responses that scored above 0, added to the policy loss with a coefficient (0.1 in the paper).
 *
 *   L = −Σ log π · m / n over rows with s > 0, with n their valid tokens; 0 without such a row
 *
 * Micro-batches that share the n of the mini-batch add up exactly.
 */
import { at } from '../at.ts';
import { float64, valueAt } from './float64.ts';
import { maskCounts, requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

export interface PositiveNll {
  readonly loss: number;
  readonly dLogProb_T: Float64Array;
}

/** `positiveTokens`: n of the mini-batch. Absent: that of these rows. */
export function positiveExampleNll(
  logProb_T: Numbers,
  rows: RaggedRows,
  scores_S: Numbers,
  positiveTokens = countPositiveTokens(rows, scores_S),
): PositiveNll {
  requireTokens('log-probs', logProb_T, tokenCount(rows));
  const [logProbs, mask_T] = [float64(logProb_T), float64(rows.mask_T)];
  const dLogProb_T = new Float64Array(logProbs.length);
  let sum = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    if (!(at(scores_S, s) > 0)) continue;
    const end = at(rows.offsets_S1, s + 1);
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      if (valueAt(mask_T, t) === 0) continue;
      sum += valueAt(logProbs, t);
      dLogProb_T[t] = -1 / positiveTokens;
    }
  }
  return { loss: sum === 0 ? 0 : -sum / positiveTokens, dLogProb_T };
}

/** Valid tokens of the rows that scored above 0. */
export function countPositiveTokens(rows: RaggedRows, scores_S: Numbers): number {
  return maskCounts(rows).reduce((total, count, s) => (at(scores_S, s) > 0 ? total + count : total), 0);
}
