/**
 * KL-Cov (verl: `kl_cov`; Cui et al. 2025, "The entropy mechanism", arXiv 2505.22617): the unclipped policy gradient,
 * and a penalty on the tokens that would reduce the entropy most. With plain means over the valid tokens at hand,
 *
 *   cov = (A − mean A)·(log π − mean log π)
 *   L = −A·ρ, and + ppo_kl_coef·|log π − log π_old| on the max(1, ⌊kl_cov_ratio·n⌋) valid tokens with the largest cov
 *
 * There is no clip at all. Among equal covariances the first token is taken. `ppo_kl` is the mean absolute log-ratio.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { exp } from '../../math/exp.ts';
import { columnsOf, tokenMean, type LossColumns } from './columns.ts';
import { largestIndices } from './largest.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const klCov: PolicyLoss = { scope: 'mini-batch', needs: LOSS_NEEDS.kl_cov, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { klCovRatio = 0.0002, ppoKlCoef = 1 } = config;
  if (!(klCovRatio > 0)) throw new InvalidInputError(`kl_cov_ratio must be greater than 0, got ${klCovRatio}`);
  const columns = columnsOf(input);
  const { tokens, mask_T, valid, logProb_T, oldLogProb_T, advantages_T } = columns;
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let kl = 0;
  for (let t = 0; t < tokens; t++) {
    const logRatio = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    const loss = -(advantages_T[t] as number) * exp(logRatio);
    loss_T[t] = loss;
    derivative_T[t] = loss;
    const mask = mask_T[t] as number;
    if (mask !== 0) kl += Math.abs(logRatio) * mask;
  }
  for (const t of penalised(columns, klCovRatio, config)) {
    const logRatio = at(logProb_T, t) - at(oldLogProb_T, t);
    loss_T[t] = at(loss_T, t) + ppoKlCoef * Math.abs(logRatio);
    derivative_T[t] = at(derivative_T, t) + ppoKlCoef * Math.sign(logRatio);
  }
  const metrics = { 'actor/ppo_kl': tokenMean(kl, valid) };
  return { ...reduceTokenLoss({ ...input, rows: columns.rows }, config, loss_T, derivative_T), metrics };
}

/** Tokens with the largest covariances. */
function penalised(columns: LossColumns, ratioOfTokens: number, { choices }: PolicyLossConfig): Int32Array {
  const { mask_T, advantages_T, detachedLogProb_T } = columns;
  const tokens_K = validTokens(mask_T);
  const meanAdvantage = meanOver(tokens_K, advantages_T);
  const meanLogProb = meanOver(tokens_K, detachedLogProb_T);
  const covariance_K = new Float64Array(tokens_K.length);
  for (let i = 0; i < tokens_K.length; i++) {
    const t = tokens_K[i] as number;
    covariance_K[i] = ((advantages_T[t] as number) - meanAdvantage) * ((detachedLogProb_T[t] as number) - meanLogProb);
  }
  const wanted = Math.min(Math.max(1, Math.trunc(tokens_K.length * ratioOfTokens)), tokens_K.length);
  const largest = (choices?.largest ?? largestIndices)(covariance_K, wanted);
  return Int32Array.from(largest, (i) => at(tokens_K, i));
}

function validTokens(mask_T: Float64Array): Int32Array {
  const valid = new Int32Array(mask_T.length);
  let count = 0;
  for (let t = 0; t < mask_T.length; t++) if ((mask_T[t] as number) > 0) valid[count++] = t;
  return valid.subarray(0, count);
}

function meanOver(indices: Int32Array, values_T: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < indices.length; i++) sum += values_T[indices[i] as number] as number;
  return sum / indices.length;
}
