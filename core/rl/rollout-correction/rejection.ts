/**
 * Rejection of tokens or rows on which trainer and sampler disagree too much (verl: `compute_rollout_rejection_mask`).
 * With l = clamp(log π_train − log π_rollout, ±20):
 *
 *   k1 = −l,  k2 = ½ l²,  k3 = e^l − 1 − l
 *
 * A rule compares a token's value, or its sum, mean or maximum over the valid tokens of a row, with its bounds. Bounds
 * of k1 are those of a ratio, but of π_rollout / π_train, since k1 is −l. Every rule judges the original mask; a token
 * stays if all accept it.
 *
 * Odd in verl's metrics: the overall `seq_masked_fraction` divides by all rows, the one of a rule by rows with a valid
 * token.
 */
import { at } from '../../at.ts';
import { clampLogRatio } from '../log-ratio.ts';
import { rowCount } from '../ragged.ts';
import { scratch } from '../scratch.ts';
import type { RejectionRule } from './options.ts';
import {
  deviation,
  largest,
  mean,
  rowMeans,
  shareAbove,
  shareBelow,
  smallest,
  weightedStatistics,
  type CorrectionColumns,
  type WeightedStatistics,
} from './statistics.ts';

export interface Rejection {
  /** The mask of the rows, 0 on rejected tokens. */
  readonly mask_T: Float64Array;
  readonly metrics: Readonly<Record<string, number>>;
}

export function rejectTokens(columns: CorrectionColumns, rules: readonly RejectionRule[]): Rejection {
  const mask_T = scratch(columns.mask_T.length);
  mask_T.set(columns.mask_T);
  const metrics: Record<string, number> = {};
  for (const rule of rules) {
    const judged = rule.over === 'none' ? judgeTokens(rule, columns) : judgeRows(rule, columns);
    reject(judged, columns, mask_T);
    Object.assign(metrics, ruleMetrics(rule, columns, judged));
  }
  const overall = shares(columns, mask_T);
  metrics['rollout_rs_masked_fraction'] = overall.tokens;
  metrics['rollout_rs_seq_masked_fraction'] = overall.sequences / rowCount(columns.rows);
  return { mask_T, metrics };
}

/** What a rule found. */
interface Judgement {
  /** The statistic over tokens; that of a row counts once for each of its valid tokens. */
  readonly ofTokens: WeightedStatistics;
  /** The statistic of each row: of tokens, their mean. */
  readonly value_S: Float64Array;
  /** The mask without rejected tokens, or 1 on each rejected row. */
  readonly kept_T?: Float64Array;
  readonly rejected_S?: Uint8Array;
  /** Share of valid tokens, and number of rows with a valid token, that it rejects. */
  readonly tokens: number;
  readonly sequences: number;
}

function judgeTokens(rule: RejectionRule, columns: CorrectionColumns): Judgement {
  const { mask_T, valid, logRatio_T, ratio_T } = columns;
  const value_T = scratch(mask_T.length);
  const kept_T = scratch(mask_T.length);
  const { estimator, lowest = -Infinity, highest } = rule;
  for (let t = 0; t < value_T.length; t++) {
    const value = estimate(estimator, logRatio_T[t] as number, ratio_T[t] as number);
    value_T[t] = value;
    kept_T[t] = value >= lowest && value <= highest ? (mask_T[t] as number) : 0;
  }
  const ofTokens = weightedStatistics(value_T, mask_T, valid, boundsOf(rule));
  return { ofTokens, value_S: rowMeans(value_T, columns), kept_T, ...shares(columns, kept_T) };
}

function judgeRows(rule: RejectionRule, columns: CorrectionColumns): Judgement {
  const { counts_S, valid } = columns;
  const value_S = ofRows(rule, columns);
  const rejected_S = outside(value_S, rule);
  let tokens = 0;
  let sequences = 0;
  for (let s = 0; s < rejected_S.length; s++) {
    if (rejected_S[s] === 0 || at(counts_S, s) === 0) continue;
    tokens += at(counts_S, s);
    sequences++;
  }
  const ofTokens = weightedStatistics(value_S, counts_S, valid, boundsOf(rule));
  return { ofTokens, value_S, rejected_S, tokens: tokens / (valid + 1e-8), sequences };
}

function boundsOf({ lowest, highest }: RejectionRule) {
  return { low: lowest ?? -Infinity, high: highest, clampLow: lowest ?? 0 };
}

/** `ratio` is exp of the clamped log-ratio. */
function estimate(estimator: RejectionRule['estimator'], logRatio: number, ratio: number): number {
  const l = clampLogRatio(logRatio);
  if (estimator === 'k1') return -l;
  return estimator === 'k2' ? 0.5 * l * l : ratio - 1 - l;
}

/** One value for each row, made in one pass over the tokens. A row without a valid token has 0. */
function ofRows({ estimator, over }: RejectionRule, columns: CorrectionColumns): Float64Array {
  const { rows, mask_T, counts_S, logRatio_T, ratio_T } = columns;
  return counts_S.map((count, s) => {
    if (count === 0) return 0;
    const end = at(rows.offsets_S1, s + 1);
    let [sum, max] = [0, -Infinity];
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const mask = mask_T[t] as number;
      if (mask === 0) continue;
      const value = estimate(estimator, logRatio_T[t] as number, ratio_T[t] as number);
      sum += value * mask;
      if (over === 'max') max = Math.max(max, value);
    }
    return over === 'max' ? max : over === 'sum' ? sum : sum / (count + 1e-8);
  });
}

/** 1 for every value outside the bounds. NaN is outside. */
function outside(values: Float64Array, { lowest = -Infinity, highest }: RejectionRule): Uint8Array {
  const found = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    found[i] = value >= lowest && value <= highest ? 0 : 1;
  }
  return found;
}

/** Takes what a rule rejects out of the mask, beside what others did. */
function reject({ kept_T, rejected_S }: Judgement, { rows }: CorrectionColumns, mask_T: Float64Array): void {
  for (let t = 0; kept_T !== undefined && t < mask_T.length; t++) if (kept_T[t] === 0) mask_T[t] = 0;
  for (let s = 0; rejected_S !== undefined && s < rejected_S.length; s++) {
    if (rejected_S[s] === 1) mask_T.fill(0, at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1));
  }
}

function ruleMetrics(rule: RejectionRule, { counts_S }: CorrectionColumns, judged: Judgement): Record<string, number> {
  const { low, high } = boundsOf(rule);
  const { ofTokens } = judged;
  const present_S = judged.value_S.filter((_, s) => at(counts_S, s) > 0);
  const rows = {
    max: largest(present_S),
    min: smallest(present_S),
    above: shareAbove(present_S, high),
    below: shareBelow(present_S, low),
  };
  const shown = rule.over === 'none' ? ofTokens : rows;
  const named: Record<string, number> = {
    mean: ofTokens.mean,
    max: shown.max,
    min: shown.min,
    fraction_high: shown.above,
    fraction_low: shown.below,
    std: ofTokens.std,
    seq_mean: mean(present_S),
    seq_std: deviation(present_S),
    seq_max: rows.max,
    seq_min: rows.min,
    seq_max_deviation: Math.max(Math.abs(rows.max), Math.abs(rows.min)),
    seq_fraction_high: rows.above,
    ...(rule.lowest === undefined ? {} : { seq_fraction_low: rows.below }),
    masked_fraction: judged.tokens,
    seq_masked_fraction: judged.sequences / present_S.length,
  };
  return Object.fromEntries(
    Object.entries(named).map(([name, value]) => [`rollout_rs_${rule.statistic}_${name}`, value]),
  );
}

/** Share of valid tokens that `kept_T` lacks, and the number of rows that lose one. */
function shares({ rows, mask_T, valid }: CorrectionColumns, kept_T: Float64Array) {
  let tokens = 0;
  let sequences = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    let lost = 0;
    const end = at(rows.offsets_S1, s + 1);
    for (let t = at(rows.offsets_S1, s); t < end; t++) lost += (mask_T[t] as number) - (kept_T[t] as number);
    tokens += lost;
    if (lost > 0) sequences++;
  }
  return { tokens: tokens / (valid + 1e-8), sequences };
}
