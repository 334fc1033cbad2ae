/**
 * Group policy gradient (verl: `gpg`; Chu et al. 2025, arXiv 2504.02546): L = −A·log π, the plain policy gradient. It
 * ignores old log-probs and reports no metric. Meant for the advantages of the same name.
 */
import { columnsOf } from './columns.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const gpg: PolicyLoss = { scope: 'token', needs: LOSS_NEEDS.gpg, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { tokens, rows, logProb_T, advantages_T } = columnsOf(input);
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    loss_T[t] = -advantage * (logProb_T[t] as number);
    derivative_T[t] = -advantage;
  }
  return { ...reduceTokenLoss({ ...input, rows }, config, loss_T, derivative_T), metrics: {} };
}
