/**
 * Self-play preference optimisation (verl-recipe: `sppo`; Wu et al. 2024, arXiv 2405.00675): a regression of the
 * log-ratio of a whole response to its advantage,
 *
 *   L_s = (Σ_t log π − Σ_t log π_old − η·A_s)²,  the mean over rows with a valid token
 *
 * A_s is the advantage at the first valid token of the row: the advantages of `sppo` (advantages/sppo.ts) have one
 * value per row. The aggregation mode is ignored; verl crashes in all but `token-mean`.
 */
import { at } from '../../at.ts';
import { square } from '../../math/square.ts';
import { rowMeanWeight } from '../aggregate.ts';
import { rowCount } from '../ragged.ts';
import { rowSums, spreadOverRow } from '../row-sums.ts';
import { columnsOf } from './columns.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const sppo: PolicyLoss = { scope: 'sequence', needs: LOSS_NEEDS.sppo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { tokens, rows, mask_T, logProb_T, oldLogProb_T, advantages_T } = columnsOf(input);
  const first_S = firstValidTokens(input, mask_T);
  const present = first_S.reduce((count, first) => count + (first >= 0 ? 1 : 0), 0);
  // verl's masked mean over rows.
  const weight = rowMeanWeight(config.totals, present + 1e-8);
  const [sums_S, oldSums_S] = [rowSums(logProb_T, rows), rowSums(oldLogProb_T, rows)];
  const dLogProb_T = new Float64Array(tokens);
  let [loss, logRatios, targets] = [0, 0, 0];
  for (let s = 0; s < first_S.length; s++) {
    const first = at(first_S, s);
    if (first < 0) continue;
    const logRatio = at(sums_S, s) - at(oldSums_S, s);
    const target = (config.sppoEta ?? 1) * at(advantages_T, first);
    loss += weight * square(logRatio - target);
    logRatios += logRatio;
    targets += target;
    spreadOverRow(2 * weight * (logRatio - target), s, rows, mask_T, dLogProb_T);
  }
  return {
    loss,
    dLogProb_T,
    metrics: {
      'actor/log_ratio_mean': logRatios / (present + 1e-8),
      'actor/preference_mean': targets / (present + 1e-8),
    },
  };
}

/** −1 for a row without a valid token. */
function firstValidTokens({ rows }: PolicyLossInput, mask_T: Float64Array): Int32Array {
  const first_S = new Int32Array(rowCount(rows)).fill(-1);
  for (let s = 0; s < first_S.length; s++) {
    for (let t = at(rows.offsets_S1, s); t < at(rows.offsets_S1, s + 1); t++) {
      if ((mask_T[t] as number) === 0) continue;
      first_S[s] = t;
      break;
    }
  }
  return first_S;
}
