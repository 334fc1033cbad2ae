/**
 * Supervised loss: −Σ log p · m / n, with n the masked tokens of the whole batch, times the number of ranks
 * (verl: `sft_loss`). Micro-batches that share n add up exactly.
 */
import { at } from '../at.ts';
import { maskedSum } from './masked-stats.ts';
import type { Numbers } from './ragged.ts';

export interface SftLoss {
  readonly loss: number;
  readonly dLogProb_N: Float64Array;
}

/** `mask_N` is 1 for scored tokens that are to be learnt. It refers to the log-probs, not to the input tokens. */
export function sftLoss(logProbs_N: Numbers, mask_N: Numbers, batchNumTokens: number, dpSize = 1): SftLoss {
  const scale = -dpSize / batchNumTokens;
  const dLogProb_N = new Float64Array(logProbs_N.length);
  for (let n = 0; n < dLogProb_N.length; n++) if (at(mask_N, n) !== 0) dLogProb_N[n] = scale * at(mask_N, n);
  return { loss: maskedSum(logProbs_N, mask_N) * scale, dLogProb_N };
}
