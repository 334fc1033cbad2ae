/**
 * The optimal token baseline (verl: `optimal_token_baseline`, `tir_optimal_token_baseline`; Li et al. 2026, arXiv
 * 2602.07078): a baseline for every position of a group. It is the mean reward to go of the group's responses, weighted
 * by how much variance each has added to the gradient up to that position.
 *
 *   G_t = Σ_{u ≥ t} r_u·m_u
 *   w_t = 1 − 2·π_t + Σ_v π_v²,   times ρ_t² with importance weights ρ of trainer against sampler
 *   W_t = Σ_{u ≤ t} w_u·m_u,   the square of the gradient of the log-prob by the logits, added up
 *   B_p = Σ G·W·m / (Σ W·m + 1e-8) over the group at position p
 *   A = (G − B)·m,   R = G, which is not set to 0 at mask 0
 *
 * Both compare responses at equal positions. `optimal_token_baseline` counts all tokens of a row; the form for
 * tool-integrated reasoning (`tir_`) counts the valid ones only, so that turns of different length don't shift it, and
 * leaves responses without a valid token out of the group.
 *
 * Where only the longest response of a group is left, its baseline would be its own return. There it is 0 instead
 * (`handleZeroTail`), if no other response has as many valid tokens. As in verl, this is from the position that equals
 * the number of valid tokens of the second longest, also where positions count masked tokens. A group of one has the
 * baseline 0.
 */
import { at } from '../../at.ts';
import { exp } from '../../math/exp.ts';
import { float64, valueAt } from '../float64.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { longestRow, maskCounts, requireTokens, tokenCount, type RaggedRows } from '../ragged.ts';
import { rowsByGroup } from './groups.ts';
import { requireSamples, tokenInput } from './inputs.ts';
import { rewardToGo } from './reward-to-go.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const EPSILON = 1e-8;

export const optimalTokenBaseline: AdvantageEstimator = {
  name: 'optimal_token_baseline',
  needs: ADVANTAGE_NEEDS.optimal_token_baseline,
  compute: (batch, config) => compute('optimal_token_baseline', batch, config, { validOnly: false }),
};

export const tirOptimalTokenBaseline: AdvantageEstimator = {
  name: 'tir_optimal_token_baseline',
  needs: ADVANTAGE_NEEDS.tir_optimal_token_baseline,
  compute: (batch, config) => compute('tir_optimal_token_baseline', batch, config, { validOnly: true }),
};

/** validOnly: positions count valid tokens only. */
interface Positions {
  readonly validOnly: boolean;
}

function compute(name: string, batch: AdvantageBatch, config: AdvantageConfig, positions: Positions): Advantages {
  const { rows } = batch;
  requireTokens('rewards', batch.rewards_T, tokenCount(rows));
  requireSamples('groups', batch.groups_S, batch);
  const returns_T = rewardToGo(batch.rewards_T, rows);
  const weights_T = cumulativeWeights(name, batch);
  const counts_S = maskCounts(rows);
  const group = new GroupBaseline(rows, returns_T, weights_T, positions, config.epsilon ?? EPSILON);
  const advantages_T = new Float64Array(returns_T.length);
  for (const all of rowsByGroup(batch.groups_S).values()) {
    const members = positions.validOnly ? all.filter((s) => at(counts_S, s) > 0) : all;
    group.fit(members.length > 1 ? members : []);
    const tail = config.handleZeroTail === false ? undefined : longestTail(members, counts_S);
    for (const s of members) group.subtract(s, s === tail?.longest ? tail.from : Infinity, advantages_T);
  }
  return { advantages_T, returns_T };
}

/** W at each token. */
function cumulativeWeights(name: string, batch: AdvantageBatch): Float64Array {
  const { rows, rolloutIsWeights_T } = batch;
  const logProb_T = tokenInput(name, 'oldLogProbs', batch);
  const sumPiSquared_T = tokenInput(name, 'sumPiSquared', batch);
  if (rolloutIsWeights_T !== undefined) requireTokens('importance weights', rolloutIsWeights_T, tokenCount(rows));
  const rho_T = rolloutIsWeights_T === undefined ? undefined : float64(rolloutIsWeights_T);
  const mask_T = float64(rows.mask_T);
  const weights_T = new Float64Array(logProb_T.length);
  for (let s = 0; s + 1 < rows.offsets_S1.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    let cumulative = 0;
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      if (valueAt(mask_T, t) !== 0) {
        const weight = 1 - 2 * exp(valueAt(logProb_T, t)) + valueAt(sumPiSquared_T, t);
        const rho = rho_T === undefined ? 1 : valueAt(rho_T, t);
        cumulative += weight * rho * rho;
      }
      weights_T[t] = cumulative;
    }
  }
  return weights_T;
}

/** The baseline of one group after the other, by position. */
class GroupBaseline {
  readonly #offsets_S1: ArrayLike<number>;
  readonly #mask_T: Float64Array;
  readonly #returns_T: Float64Array;
  readonly #weights_T: Float64Array;
  readonly #validOnly: boolean;
  readonly #epsilon: number;
  readonly #weightedReturns: Float64Array;
  readonly #totalWeights: Float64Array;

  constructor(
    rows: RaggedRows,
    returns_T: Float64Array,
    weights_T: Float64Array,
    { validOnly }: Positions,
    epsilon: number,
  ) {
    this.#offsets_S1 = rows.offsets_S1;
    this.#mask_T = float64(rows.mask_T);
    this.#returns_T = returns_T;
    this.#weights_T = weights_T;
    this.#validOnly = validOnly;
    this.#epsilon = epsilon;
    this.#weightedReturns = new Float64Array(longestRow(rows));
    this.#totalWeights = new Float64Array(this.#weightedReturns.length);
  }

  /** Fits the baseline of a group; without members it is 0. */
  fit(members: readonly number[]): void {
    const [weighted, total, mask_T] = [this.#weightedReturns, this.#totalWeights, this.#mask_T];
    weighted.fill(0);
    total.fill(0);
    for (const s of members) {
      const end = at(this.#offsets_S1, s + 1);
      let p = 0;
      for (let t = at(this.#offsets_S1, s); t < end; t++) {
        if (valueAt(mask_T, t) !== 0) {
          const weight = valueAt(this.#weights_T, t);
          weighted[p] = valueAt(weighted, p) + valueAt(this.#returns_T, t) * weight;
          total[p] = valueAt(total, p) + weight;
        } else if (this.#validOnly) continue;
        p++;
      }
    }
  }

  /** A of one row; from `zeroFrom` on the baseline is 0. */
  subtract(s: number, zeroFrom: number, advantages_T: Float64Array): void {
    const end = at(this.#offsets_S1, s + 1);
    let p = 0;
    for (let t = at(this.#offsets_S1, s); t < end; t++) {
      if (valueAt(this.#mask_T, t) !== 0) {
        const baseline =
          p < zeroFrom ? valueAt(this.#weightedReturns, p) / (valueAt(this.#totalWeights, p) + this.#epsilon) : 0;
        advantages_T[t] = valueAt(this.#returns_T, t) - baseline;
      } else if (this.#validOnly) continue;
      p++;
    }
  }
}

/** The member with the most valid tokens if it is the only one, and how many the second has. */
function longestTail(
  members: readonly number[],
  counts_S: Float64Array,
): { readonly longest: number; readonly from: number } | undefined {
  if (members.length < 2) return undefined;
  const longest = members.reduce((a, b) => (at(counts_S, b) > at(counts_S, a) ? b : a));
  const from = members.reduce((count, s) => (s === longest ? count : Math.max(count, at(counts_S, s))), 0);
  return at(counts_S, longest) > from ? { longest, from } : undefined;
}
