/**
 * Loss of a value head: ½·Σ m·(v − R)² / n, with n the masked tokens of the whole mini-batch (verl: `compute_value_loss`
 * with `token-mean`, without clipping). Micro-batches that share n add up exactly.
 */
import { at } from '../at.ts';
import type { Numbers } from './ragged.ts';

export interface ValueLoss {
  readonly loss: number;
  readonly dValue_T: Float64Array;
}

export function valueLoss(values_T: Numbers, returns_T: Numbers, mask_T: Numbers, batchNumTokens: number): ValueLoss {
  const dValue_T = new Float64Array(values_T.length);
  let loss = 0;
  for (let t = 0; t < dValue_T.length; t++) {
    if (at(mask_T, t) === 0) continue;
    const error = at(values_T, t) - at(returns_T, t);
    dValue_T[t] = (at(mask_T, t) * error) / batchNumTokens;
    loss += (at(mask_T, t) * error * error) / (2 * batchNumTokens);
  }
  return { loss, dValue_T };
}
