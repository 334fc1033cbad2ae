/**
 * Loss of a value head (verl: `compute_value_loss`; clipping: Schulman et al. 2016, arXiv 1506.02438):
 *
 *   L_t = ½·max((v − R)², (clip(v, v_old − c, v_old + c) − R)²),  or ½·(v − R)² without clipping
 *
 * aggregated like a policy loss, so that micro-batches add up. The larger loss wins, so clipping only ever slows
 * learning down. `vf_clipfrac` counts tokens where the clipped loss is strictly larger. Where both are equal, or v is
 * exactly at a bound, the derivative is torch's: each side of a tie gets half.
 */
import { aggregateInPlace, tokenTotal, type BatchTotals } from './aggregate.ts';
import { float64 } from './float64.ts';
import { InvalidInputError } from '../errors.ts';
import type { LossAggMode } from './names.ts';
import { requireTokens, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

export interface ValueLossInput {
  readonly rows: RaggedRows;
  /** The gradient is with respect to these. */
  readonly values_T: Numbers;
  readonly returns_T: Numbers;
  /** Values before this update; needed when cliprangeValue is given. */
  readonly oldValues_T?: Numbers | undefined;
}

export interface ValueLossConfig {
  readonly lossAggMode: LossAggMode;
  readonly totals: BatchTotals;
  /** 0.5 in verl; absent: no clipping. */
  readonly cliprangeValue?: number | undefined;
}

export interface ValueLoss {
  readonly loss: number;
  readonly dValue_T: Float64Array;
  /** `critic/vf_clipfrac` and `critic/vpred_mean`: local means. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** @throws InvalidInputError when arrays have different lengths, or old values are missing */
export function valueLoss(input: ValueLossInput, config: ValueLossConfig): ValueLoss {
  const columns = columnsOf(input);
  const old_T = config.cliprangeValue === undefined ? undefined : requireOld(input, columns.tokens);
  const square_T = new Float64Array(columns.tokens);
  const slope_T = new Float64Array(columns.tokens);
  let [clipped, predictions, valid] = [0, 0, 0];
  for (let t = 0; t < columns.tokens; t++) {
    const value = columns.values_T[t] as number;
    const error = value - (columns.returns_T[t] as number);
    square_T[t] = error * error;
    slope_T[t] = error;
    const isClipped =
      old_T !== undefined && clipToken(columns, old_T, config.cliprangeValue ?? 0, t, square_T, slope_T);
    const mask = columns.mask_T[t] as number;
    if (mask === 0) continue;
    valid += mask;
    predictions += value * mask;
    if (isClipped) clipped += mask;
  }
  const metrics = {
    'critic/vf_clipfrac': clipped / (valid + 1e-8),
    'critic/vpred_mean': predictions / (valid + 1e-8),
  };
  if (config.lossAggMode === 'token-mean') {
    const total = tokenTotal(config.totals, valid);
    const loss = divide(square_T, slope_T, columns, total, config.totals.dpSize ?? 1);
    // A mean over no token of a batch whose size isn't given; a batch that is known to be empty has no loss.
    const undefinedMean = valid === 0 && config.totals.batchNumTokens === undefined;
    return { loss: undefinedMean ? NaN : loss, dValue_T: slope_T, metrics };
  }
  const sum = aggregateInPlace(square_T, slope_T, input.rows, config.lossAggMode, config.totals);
  return { loss: 0.5 * sum, dValue_T: slope_T, metrics };
}

interface Columns {
  readonly tokens: number;
  readonly mask_T: Float64Array;
  readonly values_T: Float64Array;
  readonly returns_T: Float64Array;
}

function columnsOf({ rows, values_T, returns_T }: ValueLossInput): Columns {
  const tokens = tokenCount(rows);
  requireTokens('mask', rows.mask_T, tokens);
  requireTokens('values', values_T, tokens);
  requireTokens('returns', returns_T, tokens);
  return { tokens, mask_T: float64(rows.mask_T), values_T: float64(values_T), returns_T: float64(returns_T) };
}

function requireOld({ oldValues_T }: ValueLossInput, tokens: number): Float64Array {
  if (oldValues_T === undefined)
    throw new InvalidInputError('clipping the value loss needs the values before the update');
  requireTokens('old values', oldValues_T, tokens);
  return float64(oldValues_T);
}

/** Replaces a token's square and slope where the clipped ones are larger, which it returns. */
function clipToken(
  { values_T, returns_T }: Columns,
  old_T: Float64Array,
  range: number,
  t: number,
  square_T: Float64Array,
  slope_T: Float64Array,
): boolean {
  const value = values_T[t] as number;
  const [lowest, highest] = [(old_T[t] as number) - range, (old_T[t] as number) + range];
  const below = Math.min(value, highest);
  const error = Math.max(below, lowest) - (returns_T[t] as number);
  const slope = error * larger(highest, value) * larger(below, lowest);
  const square = error * error;
  const unclipped = square_T[t] as number;
  if (square < unclipped) return false;
  if (square === unclipped) slope_T[t] = 0.5 * ((slope_T[t] as number) + slope);
  else {
    square_T[t] = square;
    slope_T[t] = slope;
  }
  return square > unclipped;
}

/** Derivative of min(b, a) by b, and of max(a, b) by a: 1 or 0, and half at a tie. */
function larger(a: number, b: number): number {
  return a > b ? 1 : a === b ? 0.5 : 0;
}

/**
 * ½·Σ m·x / n, each token divided by n. Multiplying by 1/n, as other modes do, rounds differently in the last bit, and
 * a run that is replayed must give the bits that it gave before there were other modes.
 */
function divide(square_T: Float64Array, slope_T: Float64Array, columns: Columns, total: number, ranks: number): number {
  let loss = 0;
  for (let t = 0; t < square_T.length; t++) {
    const mask = columns.mask_T[t] as number;
    if (mask === 0) {
      slope_T[t] = 0;
      continue;
    }
    loss += ((mask * (square_T[t] as number)) / (2 * total)) * ranks;
    slope_T[t] = ((mask * (slope_T[t] as number)) / total) * ranks;
  }
  return loss;
}
