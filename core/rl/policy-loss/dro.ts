/**
 * Direct reward optimisation (verl: `dro`; Richemond et al. 2024, arXiv 2405.19107): a squared log-ratio instead of a
 * clip,
 *
 *   L = −(A·log π − (β/2)·(log π − log π_old)²)
 *
 * The log-ratio is not clamped. β (`dro_beta`) has no default, because its scale depends on that of the rewards.
 */
import { InvalidInputError } from '../../errors.ts';
import { columnsOf, tokenMean } from './columns.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const dro: PolicyLoss = { scope: 'token', needs: LOSS_NEEDS.dro, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const beta = config.droBeta;
  if (beta === undefined || !(beta > 0)) {
    throw new InvalidInputError(`dro needs a dro_beta greater than 0, got ${beta ?? 'none'}`, {
      hint: 'set actor.policy_loss.dro_beta, for example to 0.1',
    });
  }
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T } = columnsOf(input);
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let kl = 0;
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    const logProb = logProb_T[t] as number;
    const logRatio = logProb - (oldLogProb_T[t] as number);
    loss_T[t] = -(advantage * logProb - 0.5 * beta * logRatio * logRatio);
    derivative_T[t] = -(advantage - beta * logRatio);
    const mask = mask_T[t] as number;
    if (mask !== 0) kl += -logRatio * mask;
  }
  const metrics = { 'actor/ppo_kl': tokenMean(kl, valid) };
  return { ...reduceTokenLoss({ ...input, rows }, config, loss_T, derivative_T), metrics };
}
