/**
 * Generalised advantage estimation (verl: `gae`; Schulman et al. 2015, arXiv 1506.02438): what a token was better than
 * the critic expected, from its own reward and discounted errors of later tokens. Backwards over the tokens of a row,
 * from V⁺ = A⁺ = 0:
 *
 *   A_t = r_t + γ·V⁺ − V_t + γλ·A⁺,   then V⁺ = V_t and A⁺ = A_t
 *   R_t = A_t + V_t, the critic's target
 *
 * Tokens with mask 0 are skipped: their reward and value are dropped, and they carry the advantage of the next valid
 * token. As in verl, A is then whitened over all valid tokens of the batch and not multiplied by the mask afterwards; R
 * is taken before. A batch needs two valid tokens.
 */
import { at } from '../../at.ts';
import { float64, valueAt } from '../float64.ts';
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { tokenInput } from './inputs.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

export const gae: AdvantageEstimator = { name: 'gae', needs: ADVANTAGE_NEEDS.gae, compute };

function compute(batch: AdvantageBatch, { gamma = 1, lam = 1 }: AdvantageConfig): Advantages {
  const { rows, rewards_T } = batch;
  const values_T = tokenInput('gae', 'values', batch);
  const raw_T = generalizedAdvantages(rewards_T, values_T, rows, gamma, () => lam);
  return { advantages_T: maskedWhiten(raw_T, rows.mask_T), returns_T: criticTargets(raw_T, values_T) };
}

/** A before whitening. `lamOf`: the λ of each row. */
export function generalizedAdvantages(
  rewards_T: Numbers,
  values_T: Float64Array,
  rows: RaggedRows,
  gamma: number,
  lamOf: (s: number) => number,
): Float64Array {
  requireTokens('rewards', rewards_T, tokenCount(rows));
  const [rewards, mask_T] = [float64(rewards_T), float64(rows.mask_T)];
  const advantages_T = new Float64Array(rewards.length);
  for (let s = 0; s < rowCount(rows); s++) {
    const [start, decay] = [at(rows.offsets_S1, s), gamma * lamOf(s)];
    let [nextValue, advantage] = [0, 0];
    for (let t = at(rows.offsets_S1, s + 1) - 1; t >= start; t--) {
      if (valueAt(mask_T, t) !== 0) {
        const value = valueAt(values_T, t);
        advantage = valueAt(rewards, t) + gamma * nextValue - value + decay * advantage;
        nextValue = value;
      }
      advantages_T[t] = advantage;
    }
  }
  return advantages_T;
}

/** Advantages plus values: the critic's targets. */
export function criticTargets(advantages_T: Float64Array, values_T: Float64Array): Float64Array {
  const returns_T = new Float64Array(values_T.length);
  for (let t = 0; t < returns_T.length; t++) returns_T[t] = valueAt(advantages_T, t) + valueAt(values_T, t);
  return returns_T;
}
