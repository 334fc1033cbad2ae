/**
 * Soft adaptive policy optimisation (verl: `sapo`; arXiv 2511.20347): a smooth gate instead of a clip,
 * L = −A·(4/τ)·σ(τ(ρ − 1)) with τ = tau_pos where A > 0, else tau_neg. Aggregation is always seq-mean-token-mean.
 */
import { exp } from '../../math/exp.ts';
import { columnsOf, tokenMean } from './columns.ts';
import { clampLogRatio, LOG_RATIO_LIMIT } from '../log-ratio.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const sapo: PolicyLoss = { scope: 'token', needs: LOSS_NEEDS.sapo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T } = columnsOf(input);
  const { tauPos = 1, tauNeg = 1.05 } = config;
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let kl = 0;
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    const difference = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    const logRatio = clampLogRatio(difference);
    const ratio = exp(logRatio);
    const temperature = advantage > 0 ? tauPos : tauNeg;
    const gate = 1 / (1 + exp(-temperature * (ratio - 1)));
    loss_T[t] = (-advantage * gate * 4) / temperature;
    derivative_T[t] = Math.abs(difference) < LOG_RATIO_LIMIT ? -advantage * 4 * gate * (1 - gate) * ratio : 0;
    const mask = mask_T[t] as number;
    if (mask !== 0) kl += -logRatio * mask;
  }
  const metrics = { 'actor/pg_clipfrac': 0, 'actor/ppo_kl': tokenMean(kl, valid), 'actor/pg_clipfrac_lower': 0 };
  const mode = { ...config, lossAggMode: 'seq-mean-token-mean' } as const;
  const reduced = reduceTokenLoss({ ...input, rows }, mode, loss_T, derivative_T);
  return { ...reduced, metrics };
}
