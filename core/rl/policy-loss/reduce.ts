import { aggregateInPlace } from '../aggregate.ts';
import { scratchFloat64 } from '../scratch.ts';
import { requireTokens } from '../ragged.ts';
import type { PolicyLossConfig, PolicyLossInput } from './types.ts';

/**
 * Last step of every token loss: multiply by the rollout's importance weights, aggregate, and turn d(token loss) /
 * d(log π) into d(loss) / d(log π). Overwrites both arrays.
 */
export function reduceTokenLoss(
  input: Pick<PolicyLossInput, 'rows' | 'rolloutIsWeights_T'>,
  config: Pick<PolicyLossConfig, 'lossAggMode' | 'totals'>,
  loss_T: Float64Array,
  derivative_T: Float64Array,
): { readonly loss: number; readonly dLogProb_T: Float64Array } {
  const isWeights_T = input.rolloutIsWeights_T === undefined ? undefined : scratchFloat64(input.rolloutIsWeights_T);
  if (isWeights_T !== undefined) {
    requireTokens('importance weights', isWeights_T, loss_T.length);
    multiply(loss_T, isWeights_T);
  }
  const loss = aggregateInPlace(loss_T, derivative_T, input.rows, config.lossAggMode, config.totals);
  if (isWeights_T !== undefined) multiplyNonZero(derivative_T, isWeights_T);
  return { loss, dLogProb_T: derivative_T };
}

function multiply(values_T: Float64Array, by_T: Float64Array): void {
  for (let t = 0; t < values_T.length; t++) values_T[t] = (values_T[t] as number) * (by_T[t] as number);
}

/** A token outside the mask has derivative 0, whatever its importance weight is. */
function multiplyNonZero(values_T: Float64Array, by_T: Float64Array): void {
  for (let t = 0; t < values_T.length; t++) {
    const value = values_T[t] as number;
    if (value !== 0) values_T[t] = value * (by_T[t] as number);
  }
}
