import { at } from '../../at.ts';
import { aggregate } from '../aggregate.ts';
import type { PolicyLossConfig, PolicyLossInput } from './types.ts';

/**
 * Last step of every token loss: multiply by the rollout's importance weights, aggregate, and turn d(token loss) / d(log π)
 * into d(loss) / d(log π).
 */
export function reduceTokenLoss(
  input: PolicyLossInput,
  config: Pick<PolicyLossConfig, 'lossAggMode' | 'totals'>,
  loss_T: Float64Array,
  derivative_T: Float64Array,
): { readonly loss: number; readonly dLogProb_T: Float64Array } {
  const isWeights_T = input.rolloutIsWeights_T;
  const weighted_T = isWeights_T === undefined ? loss_T : loss_T.map((loss, t) => loss * at(isWeights_T, t));
  const { value, weights_T } = aggregate(weighted_T, input.rows, config.lossAggMode, config.totals);
  const dLogProb_T = weights_T.map((weight, t) =>
    weight === 0 ? 0 : weight * at(derivative_T, t) * (isWeights_T === undefined ? 1 : at(isWeights_T, t)),
  );
  return { loss: value, dLogProb_T };
}
