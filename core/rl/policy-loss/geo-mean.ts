/**
 * Geometric-mean policy optimisation (verl: `geo_mean`; Zhao et al. 2025, arXiv 2507.20673). A log-ratio is clipped
 * only on the side that would raise the objective; the sequence's ratio is the geometric mean of its tokens', its
 * advantage the
 * mean of theirs:  L_s = −A_s · exp(Σ clip(log ρ)·m / (Σ m + 1e-8)). The loss is the plain mean over rows, empty ones
 * included: aggregation mode and totals are ignored. Importance weights enter as geometric mean of w + 1e-10.
 */
import { at } from '../../at.ts';
import { exp } from '../../math/exp.ts';
import { log } from '../../math/log.ts';
import { float64 } from '../float64.ts';
import { requireTokens, rowCount } from '../ragged.ts';
import { clipWidths, passedShare } from './clip-bounds.ts';
import { columnsOf, tokenMean, type LossColumns } from './columns.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const geoMean: PolicyLoss = { scope: 'sequence', needs: LOSS_NEEDS.geo_mean, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { rows } = input;
  const [low, most] = clipWidths(config);
  const least = -low;
  const columns = columnsOf(input);
  const isWeights_T = input.rolloutIsWeights_T === undefined ? undefined : float64(input.rolloutIsWeights_T);
  if (isWeights_T !== undefined) requireTokens('importance weights', isWeights_T, columns.tokens);
  const dLogProb_T = new Float64Array(columns.tokens);
  let loss = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    const row = rowMeans(columns, from, to, least, most);
    const weight = isWeights_T === undefined ? 1 : geometricMean(isWeights_T, columns.mask_T, from, to);
    const rowLoss = -row.advantage * exp(row.logRatio) * weight;
    loss += rowLoss / rowCount(rows);
    spreadGradient(columns, from, to, least, most, rowLoss / rowCount(rows) / (row.count + 1e-8), dLogProb_T);
  }
  return { loss, dLogProb_T, metrics: metricsOf(columns, least, most) };
}

/** Clips from above where A > 0, and from below where A < 0; a token with A = 0 contributes 0. */
function clip(logRatio: number, advantage: number, least: number, most: number): number {
  if (advantage > 0) return Math.min(logRatio, most);
  if (advantage < 0) return Math.max(logRatio, least);
  return advantage === 0 ? 0 : NaN;
}

/** Multiplies by the mask instead of skipping: as in the reference, a NaN outside the mask makes the loss NaN. */
function rowMeans(
  { mask_T, logProb_T, oldLogProb_T, advantages_T }: LossColumns,
  from: number,
  to: number,
  least: number,
  most: number,
): { readonly advantage: number; readonly logRatio: number; readonly count: number } {
  let [advantages, logRatios, count] = [0, 0, 0];
  for (let t = from; t < to; t++) {
    const mask = mask_T[t] as number;
    const advantage = advantages_T[t] as number;
    advantages += advantage * mask;
    logRatios += clip((logProb_T[t] as number) - (oldLogProb_T[t] as number), advantage, least, most) * mask;
    count += mask;
  }
  return { advantage: advantages / (count + 1e-8), logRatio: logRatios / (count + 1e-8), count };
}

function geometricMean(weights_T: Float64Array, mask_T: Float64Array, from: number, to: number): number {
  let [logs, count] = [0, 0];
  for (let t = from; t < to; t++) {
    const mask = mask_T[t] as number;
    if (mask !== 0) logs += log((weights_T[t] as number) + 1e-10) * mask;
    count += mask;
  }
  return exp(logs / (count + 1e-8));
}

/** Every token that is not clipped gets the same share of the row's gradient. */
function spreadGradient(
  { mask_T, logProb_T, oldLogProb_T, advantages_T }: LossColumns,
  from: number,
  to: number,
  least: number,
  most: number,
  share: number,
  dLogProb_T: Float64Array,
): void {
  for (let t = from; t < to; t++) {
    const advantage = advantages_T[t] as number;
    const logRatio = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    const passes = advantage !== 0 && clip(logRatio, advantage, least, most) === logRatio;
    if (passes && (mask_T[t] as number) !== 0) dLogProb_T[t] = share * passedShare(logRatio, least, most);
  }
}

/** Shares of valid tokens with A > 0 and with A < 0 whose log-ratio is outside [−low, high], on either side. */
function metricsOf(columns: LossColumns, least: number, most: number): Record<string, number> {
  const { tokens, mask_T, valid, logProb_T, oldLogProb_T, advantages_T } = columns;
  let [good, bad, kl] = [0, 0, 0];
  for (let t = 0; t < tokens; t++) {
    const mask = mask_T[t] as number;
    if (mask === 0) continue;
    const logRatio = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    kl += -logRatio * mask;
    if (!(logRatio < least || logRatio > most)) continue;
    if ((advantages_T[t] as number) > 0) good += mask;
    if ((advantages_T[t] as number) < 0) bad += mask;
  }
  return {
    'actor/pg_clipfrac': tokenMean(good, valid),
    'actor/ppo_kl': tokenMean(kl, valid),
    'actor/pg_clipfrac_lower': tokenMean(bad, valid),
  };
}
