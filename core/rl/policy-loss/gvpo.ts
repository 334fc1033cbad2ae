/**
 * Group variance policy optimisation (verl-recipe: `gvpo`; Zhang et al. 2025, arXiv 2504.19599): the log-ratio of a
 * whole response, as an implicit reward relative to its group, shall equal its advantage.
 *
 *   r_s = β·(Σ_t log π − Σ_t log π_old)
 *   L = ½·Σ_s ((r_s − sg(mean_g r)) − A_s)² / (n − 1),  A_s the mean advantage of the row's valid tokens
 *
 * n is the number of responses to a prompt. The sum over rows is divided by n − 1 only, so the loss grows with the
 * number of prompts, micro-batches add up, and aggregation mode and totals are ignored. A row without a valid token
 * makes the loss NaN.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { square } from '../../math/square.ts';
import { rowsByGroup } from '../advantages/groups.ts';
import { rowCount } from '../ragged.ts';
import { rowSums, spreadOverRow } from '../row-sums.ts';
import { columnsOf, needed } from './columns.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const gvpo: PolicyLoss = { scope: 'group', needs: LOSS_NEEDS.gvpo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const beta = config.gvpoBeta ?? 0.1;
  const { tokens, rows, mask_T, logProb_T, oldLogProb_T, advantages_T, detachedLogProb_T } = columnsOf(input);
  const old_S = rowSums(oldLogProb_T, rows);
  const reward_S = rowSums(logProb_T, rows).map((sum, s) => beta * (sum - at(old_S, s)));
  const detached_S = rowSums(detachedLogProb_T, rows).map((sum, s) => beta * (sum - at(old_S, s)));
  const [advantages_S, counts_S] = [rowSums(advantages_T, rows), rowSums(mask_T, rows)];
  const dLogProb_T = new Float64Array(tokens);
  let loss = 0;
  for (const members of rowsByGroup(groupsOf(input)).values()) {
    const size = requireSize(members.length, config.groupSize);
    const mean = members.reduce((sum, s) => sum + at(detached_S, s), 0) / size;
    for (const s of members) {
      const residual = at(reward_S, s) - mean - at(advantages_S, s) / at(counts_S, s);
      loss += (0.5 * square(residual)) / (size - 1);
      spreadOverRow((beta * residual) / (size - 1), s, rows, mask_T, dLogProb_T);
    }
  }
  return { loss, dLogProb_T, metrics: {} };
}

function groupsOf(input: PolicyLossInput): ArrayLike<unknown> {
  const groups_S = needed(input.groups_S, 'gvpo', 'groups');
  if (groups_S.length !== rowCount(input.rows)) {
    throw new InvalidInputError(`gvpo got ${groups_S.length} groups for ${rowCount(input.rows)} rows`);
  }
  return groups_S;
}

function requireSize(size: number, wanted: number | undefined): number {
  if (wanted === undefined || size === wanted) return size;
  throw new InvalidInputError(`gvpo needs complete groups of ${wanted} responses, got one of ${size}`, {
    hint: 'keep the rows of a prompt in one micro-batch',
  });
}
