import { at } from '../../at.ts';
import type { PolicyLossInput } from './types.ts';

const LIMIT = 20;

/** log π − log π_old per token, clamped to ±20 so that the ratio stays finite. */
export function clampedLogRatio({ logProb_T, oldLogProb_T }: PolicyLossInput): Float64Array {
  const ratio_T = new Float64Array(logProb_T.length);
  for (let t = 0; t < ratio_T.length; t++) {
    ratio_T[t] = Math.min(Math.max(at(logProb_T, t) - at(oldLogProb_T, t), -LIMIT), LIMIT);
  }
  return ratio_T;
}

/** Derivative of the clamp at one token: 1 up to and including the limit, 0 beyond. */
export function clampPasses({ logProb_T, oldLogProb_T }: PolicyLossInput, t: number): number {
  return Math.abs(at(logProb_T, t) - at(oldLogProb_T, t)) <= LIMIT ? 1 : 0;
}

/** Mean of −log ratio over valid tokens: an estimate of KL(old ‖ new), verl's `actor/ppo_kl`. */
export function negated(values_T: Float64Array): Float64Array {
  return values_T.map((value) => -value);
}
