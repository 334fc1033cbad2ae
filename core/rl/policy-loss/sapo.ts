/**
 * Soft adaptive policy optimisation (verl: `sapo`; arXiv 2511.20347): a smooth gate instead of a clip,
 * L = −A·(4/τ)·σ(τ(ρ − 1)) with τ = tau_pos where A > 0, else tau_neg. Aggregation is always seq-mean-token-mean.
 */
import { at } from '../../at.ts';
import { maskedMean } from '../masked-stats.ts';
import { clampedLogRatio, clampPasses, negated } from './log-ratio.ts';
import { reduceTokenLoss } from './reduce.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const sapo: PolicyLoss = { scope: 'token', compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const logRatio_T = clampedLogRatio(input);
  const loss_T = new Float64Array(logRatio_T.length);
  const derivative_T = new Float64Array(logRatio_T.length);
  for (let t = 0; t < loss_T.length; t++) {
    const advantage = at(input.advantages_T, t);
    const temperature = advantage > 0 ? (config.tauPos ?? 1) : (config.tauNeg ?? 1.05);
    const ratio = Math.exp(at(logRatio_T, t));
    const gate = 1 / (1 + Math.exp(-temperature * (ratio - 1)));
    loss_T[t] = (-advantage * gate * 4) / temperature;
    derivative_T[t] = -advantage * 4 * gate * (1 - gate) * ratio * clampPasses(input, t);
  }
  const metrics = {
    'actor/pg_clipfrac': 0,
    'actor/ppo_kl': maskedMean(negated(logRatio_T), input.rows.mask_T),
    'actor/pg_clipfrac_lower': 0,
  };
  const reduced = reduceTokenLoss(input, { ...config, lossAggMode: 'seq-mean-token-mean' }, loss_T, derivative_T);
  return { ...reduced, metrics };
}
