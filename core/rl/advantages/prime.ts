/**
 * The advantages of PRIME (verl-recipe: `prime`, `compute_rloo_advantage_return`; Cui et al. 2025, arXiv 2502.01456): a
 * reward for every token from an implicit reward model, and the outcome on the last valid token, each minus a
 * leave-one-out baseline of its group. With k samples in the group and x̄ the mean of x over the valid tokens of a row:
 *
 *   p_t = k / (k − 1) · x_t − Σ_group x̄ / (k − 1)       process, coefficient `rewardDpoCoef`
 *   o   = k / (k − 1) · s   − Σ_group s / (k − 1)        outcome, coefficient `rewardGtCoef`
 *   R_t = Σ_{u ≥ t} (c_p·p_u + c_o·o·[u is the last valid token])·m_u,   A = whiten(R)
 *
 * As in verl, A isn't multiplied by the mask afterwards. A group of one is refused. A row without a valid token counts
 * as 0 in the process baseline; verl gets NaN there. verl wants the rows in the order of their groups; here any order
 * will do.
 */
import { at } from '../../at.ts';
import { float64, valueAt } from '../float64.ts';
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { maskCounts, tokenCount, type RaggedRows } from '../ragged.ts';
import { rowsByGroup } from './groups.ts';
import { requireSamples, requireTwo, tokenInput } from './inputs.ts';
import { lastValidToken, outcomeScores } from './outcomes.ts';
import { rewardToGo } from './reward-to-go.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const COEFFICIENT = 5;

export const prime: AdvantageEstimator = { name: 'prime', needs: ADVANTAGE_NEEDS.prime, compute };

function compute(
  batch: AdvantageBatch,
  { rewardDpoCoef = COEFFICIENT, rewardGtCoef = COEFFICIENT }: AdvantageConfig,
): Advantages {
  const rows = { ...batch.rows, mask_T: float64(batch.rows.mask_T) };
  requireSamples('groups', batch.groups_S, batch);
  const groups = [...rowsByGroup(batch.groups_S)];
  for (const [group, members] of groups) requireTwo('prime', members, group);
  const parts = groups.map(([, members]) => members);
  const scores_S = outcomeScores(batch.rewards_T, rows);
  const centred_T = new Float64Array(tokenCount(rows));
  if (rewardDpoCoef !== 0) {
    const process_T = tokenInput('prime', 'processRewards', batch);
    addProcess(process_T, leaveOneOut(rowMeans(process_T, rows), parts), rows, rewardDpoCoef, centred_T);
  }
  addOutcomes(scores_S, leaveOneOut(scores_S, parts), rows, rewardGtCoef, centred_T);
  const returns_T = rewardToGo(centred_T, rows);
  return { advantages_T: maskedWhiten(returns_T, rows.mask_T), returns_T };
}

/**
 * Two numbers for each sample: the factor of a value, k / (k − 1), and what is subtracted, the group's sum / (k − 1).
 */
interface LeaveOneOut {
  readonly scale_S: Float64Array;
  readonly baseline_S: Float64Array;
}

function leaveOneOut(values_S: Float64Array, groups: readonly (readonly number[])[]): LeaveOneOut {
  const scale_S = new Float64Array(values_S.length);
  const baseline_S = new Float64Array(values_S.length);
  for (const members of groups) {
    const others = members.length - 1;
    const sum = members.reduce((total, s) => total + at(values_S, s), 0);
    for (const s of members) {
      scale_S[s] = members.length / others;
      baseline_S[s] = sum / others;
    }
  }
  return { scale_S, baseline_S };
}

/** c_p·p at every valid token. */
function addProcess(
  process_T: Float64Array,
  { scale_S, baseline_S }: LeaveOneOut,
  rows: RaggedRows,
  coefficient: number,
  centred_T: Float64Array,
): void {
  const mask_T = float64(rows.mask_T);
  for (let s = 0; s < scale_S.length; s++) {
    const [scale, baseline, end] = [at(scale_S, s), at(baseline_S, s), at(rows.offsets_S1, s + 1)];
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      if (valueAt(mask_T, t) !== 0) centred_T[t] = coefficient * (valueAt(process_T, t) * scale - baseline);
    }
  }
}

/** c_o·o on the last valid token of each row. */
function addOutcomes(
  scores_S: Float64Array,
  { scale_S, baseline_S }: LeaveOneOut,
  rows: RaggedRows,
  coefficient: number,
  centred_T: Float64Array,
): void {
  for (let s = 0; s < scores_S.length; s++) {
    const last = lastValidToken(rows, s);
    const outcome = coefficient * (at(scores_S, s) * at(scale_S, s) - at(baseline_S, s));
    if (last !== -1) centred_T[last] = valueAt(centred_T, last) + outcome;
  }
}

/** Mean over the valid tokens of each row. */
function rowMeans(values_T: Float64Array, rows: RaggedRows): Float64Array {
  const mask_T = float64(rows.mask_T);
  return maskCounts(rows).map((count, s) => {
    const end = at(rows.offsets_S1, s + 1);
    let sum = 0;
    for (let t = at(rows.offsets_S1, s); t < end; t++) if (valueAt(mask_T, t) !== 0) sum += valueAt(values_T, t);
    return count === 0 ? 0 : sum / count;
  });
}
