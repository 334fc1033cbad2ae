/**
 * Geometric-mean policy optimisation (verl: `geo_mean`; Zhao et al. 2025, arXiv 2507.20673). A log-ratio is clipped only on
 * the side that would raise the objective; the sequence's ratio is the geometric mean of its tokens', its advantage the
 * mean of theirs:  L_s = −A_s · exp(Σ clip(log ρ)·m / (Σ m + 1e-8)). The loss is the plain mean over rows, empty ones
 * included: aggregation mode and totals are ignored. Importance weights enter as geometric mean of w + 1e-10.
 */
import { at } from '../../at.ts';
import { maskedMean } from '../masked-stats.ts';
import { rowCount, type Numbers } from '../ragged.ts';
import { clipBounds } from './clip-bounds.ts';
import { negated } from './log-ratio.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const geoMean: PolicyLoss = { scope: 'sequence', compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { rows, advantages_T } = input;
  const logRatio_T = Float64Array.from(input.logProb_T, (logProb, t) => logProb - at(input.oldLogProb_T, t));
  const clip = objectiveClip(config);
  const bounded_T = logRatio_T.map((logRatio, t) => clip(logRatio, at(advantages_T, t)));
  const dLogProb_T = new Float64Array(logRatio_T.length);
  let loss = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    const row = (values: Numbers) =>
      Array.prototype.slice.call(values, rows.offsets_S1[s], rows.offsets_S1[s + 1]) as number[];
    const mask = row(rows.mask_T);
    const count = mask.reduce((sum, m) => sum + m, 0);
    const weights = input.rolloutIsWeights_T === undefined ? undefined : row(input.rolloutIsWeights_T);
    const weight =
      weights === undefined
        ? 1
        : Math.exp(
            maskedMean(
              weights.map((w) => Math.log(w + 1e-10)),
              mask,
            ),
          );
    const rowLoss = -rowMean(row(advantages_T), mask) * Math.exp(rowMean(row(bounded_T), mask)) * weight;
    loss += rowLoss / rowCount(rows);
    for (let t = at(rows.offsets_S1, s); t < at(rows.offsets_S1, s + 1); t++) {
      if (at(rows.mask_T, t) !== 0 && bounded_T[t] === logRatio_T[t] && advantages_T[t] !== 0) {
        dLogProb_T[t] = rowLoss / rowCount(rows) / (count + 1e-8);
      }
    }
  }
  const outside = outsideShare(input, config, logRatio_T);
  const metrics = {
    'actor/pg_clipfrac': outside((advantage) => advantage > 0),
    'actor/ppo_kl': maskedMean(negated(logRatio_T), rows.mask_T),
    'actor/pg_clipfrac_lower': outside((advantage) => advantage < 0),
  };
  return { loss, dLogProb_T, metrics };
}

/** Clips a log-ratio from above where A > 0, and from below where A < 0; a token with A = 0 contributes 0. */
function objectiveClip(config: PolicyLossConfig): (logRatio: number, advantage: number) => number {
  const [lowest, highest] = clipBounds(config);
  return (logRatio, advantage) => {
    if (advantage > 0) return Math.min(logRatio, highest - 1);
    if (advantage < 0) return Math.max(logRatio, lowest - 1);
    return advantage === 0 ? 0 : NaN;
  };
}

/** Share of valid tokens with an advantage of this sign whose log-ratio is outside [−low, high], on either side. */
function outsideShare(input: PolicyLossInput, config: PolicyLossConfig, logRatio_T: Float64Array) {
  const [lowest, highest] = clipBounds(config);
  return (signed: (advantage: number) => boolean): number => {
    const counted_T = logRatio_T.map((logRatio, t) =>
      Number((logRatio < lowest - 1 || logRatio > highest - 1) && signed(at(input.advantages_T, t))),
    );
    return maskedMean(counted_T, input.rows.mask_T);
  };
}

/** Multiplies by the mask instead of skipping: as in the reference, a NaN outside the mask makes the loss NaN. */
function rowMean(values: readonly number[], mask: readonly number[]): number {
  const count = mask.reduce((sum, m) => sum + m, 0);
  return values.reduce((sum, value, t) => sum + value * at(mask, t), 0) / (count + 1e-8);
}
