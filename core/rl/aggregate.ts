/**
 * Aggregates a loss per token to the loss of a batch (verl: `agg_loss`, key `actor.loss_agg_mode`).
 *
 * With R data-parallel ranks, and n valid tokens and S sequences in the whole mini-batch:
 *   token-mean               Σ x·m / n · R
 *   token-sum                Σ x·m · R
 *   seq-mean-token-sum       Σ_s (Σ_t x·m) / S · R            (empty rows excluded)
 *   seq-mean-token-sum-norm  the same ÷ lossScaleFactor
 *   seq-mean-token-mean      Σ_s (Σ_t x·m / (Σ_t m + 1e-8)) / S · R
 * All are linear in x, so the derivative is a weight per token. Dividing by the totals of the mini-batch, not of the
 * micro-batch, makes micro-batches add up exactly to the mini-batch whatever the split.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { LOSS_AGG_MODES, type LossAggMode } from './names.ts';
import {
  countedRows,
  longestRow,
  maskCounts,
  requireTokens,
  rowCount,
  tokenCount,
  type Numbers,
  type RaggedRows,
} from './ragged.ts';
import { scratch, scratchFloat64 } from './scratch.ts';

/** Totals over the mini-batch, all ranks (verl: `global_batch_info`). Absent ones are taken from the rows at hand. */
export interface BatchTotals {
  readonly dpSize?: number | undefined;
  readonly batchNumTokens?: number | undefined;
  readonly globalBatchSize?: number | undefined;
  /** Divisor of `seq-mean-token-sum-norm`. Absent: the longest row, which depends on the split into micro-batches. */
  readonly lossScaleFactor?: number | undefined;
}

export interface Aggregated {
  readonly value: number;
  /** d value / d x at each token; 0 where the mask is 0. Inside of `withScratch` a scratch array. */
  readonly weights_T: Float64Array;
}

/** Totals of a mini-batch, by which each of its micro-batches divides. */
export function batchTotals(rows: RaggedRows, lossScaleFactor?: number): BatchTotals {
  const batchNumTokens = sum(maskCounts(rows));
  return { dpSize: 1, batchNumTokens, globalBatchSize: rowCount(rows), lossScaleFactor };
}

/** @throws InvalidInputError on an unknown mode, or when dpSize > 1 comes without the total the mode divides by. */
export function aggregate(
  values_T: Numbers,
  rows: RaggedRows,
  mode: LossAggMode,
  totals: BatchTotals = {},
): Aggregated {
  const weights_T = scratch(values_T.length).fill(1);
  return { value: aggregateInPlace(scratchFloat64(values_T), weights_T, rows, mode, totals), weights_T };
}

/**
 * The same without another array: turns d x / d y at each token into d value / d y, and returns the value.
 * @throws as `aggregate` does
 */
export function aggregateInPlace(
  values_T: Float64Array,
  derivative_T: Float64Array,
  rows: RaggedRows,
  mode: LossAggMode,
  totals: BatchTotals,
): number {
  requireTokens('loss', values_T, tokenCount(rows));
  const { mask_T, counts_S } = countedRows(rows);
  const weightOfRow = rowWeight(rows, mode, totals, counts_S);
  const perSequence = mode !== 'token-mean' && mode !== 'token-sum';
  let value = nothingValid(mode, totals, counts_S) ? NaN : 0;
  for (let s = 0; s < counts_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    const count = at(counts_S, s);
    const weight = count === 0 ? 0 : weightOfRow(count);
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const x = values_T[t] as number;
      const tokenWeight = weight * (mask_T[t] as number);
      if (tokenWeight !== 0) {
        value += x * tokenWeight;
        derivative_T[t] = tokenWeight * (derivative_T[t] as number);
      } else {
        derivative_T[t] = 0;
        // verl multiplies by the mask in the per-sequence modes: a NaN at mask 0 of a row that counts shows in the
        // loss.
        if (perSequence && count !== 0 && !Number.isFinite(x)) value = NaN;
      }
    }
  }
  return value;
}

/** The value alone, without an array for each token: of a batch that is too large for more of them. @throws as above */
export function aggregatedValue(values_T: Numbers, rows: RaggedRows, mode: LossAggMode, totals: BatchTotals): number {
  requireTokens('loss', values_T, tokenCount(rows));
  const counts_S = maskCounts(rows);
  const weightOfRow = rowWeight(rows, mode, totals, counts_S);
  const perSequence = mode !== 'token-mean' && mode !== 'token-sum';
  let value = nothingValid(mode, totals, counts_S) ? NaN : 0;
  for (let s = 0; s < counts_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    const count = at(counts_S, s);
    const weight = count === 0 ? 0 : weightOfRow(count);
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const x = values_T[t] as number;
      const tokenWeight = weight * (rows.mask_T[t] as number);
      if (tokenWeight !== 0) value += x * tokenWeight;
      else if (perSequence && count !== 0 && !Number.isFinite(x)) value = NaN; // as above
    }
  }
  return value;
}

/**
 * The number that `token-mean` divides by.
 * @throws InvalidInputError when dpSize > 1 and the total of all ranks is not given
 */
export function tokenTotal(totals: BatchTotals, tokensAtHand: number): number {
  return requireTotal('batchNumTokens', totals.batchNumTokens, totals.dpSize ?? 1, tokensAtHand);
}

/**
 * The weight of a row in a mean over rows, for losses that have one value per row and no aggregation mode.
 * @throws InvalidInputError when dpSize > 1 and the total of all ranks is not given
 */
export function rowMeanWeight(totals: BatchTotals, rowsAtHand: number): number {
  const ranks = totals.dpSize ?? 1;
  return ranks / requireTotal('globalBatchSize', totals.globalBatchSize, ranks, rowsAtHand);
}

/** The weight of a valid token as a function of the number of valid tokens in its row. */
function rowWeight(
  rows: RaggedRows,
  mode: LossAggMode,
  totals: BatchTotals,
  counts_S: Float64Array,
): (validTokens: number) => number {
  const ranks = totals.dpSize ?? 1;
  const sequences = () => requireTotal('globalBatchSize', totals.globalBatchSize, ranks, nonZero(counts_S));
  switch (mode) {
    case 'token-mean': {
      const weight = ranks / tokenTotal(totals, sum(counts_S));
      return () => weight;
    }
    case 'token-sum':
      return () => ranks;
    case 'seq-mean-token-sum': {
      const weight = ranks / sequences();
      return () => weight;
    }
    case 'seq-mean-token-sum-norm': {
      const weight = ranks / sequences() / (totals.lossScaleFactor ?? longestRow(rows));
      return () => weight;
    }
    case 'seq-mean-token-mean': {
      const weight = ranks / sequences();
      return (validTokens) => weight / (validTokens + 1e-8);
    }
    default:
      throw new InvalidInputError(`unknown loss_agg_mode "${String(mode)}"`, {
        hint: `one of ${LOSS_AGG_MODES.join(', ')}`,
      });
  }
}

function requireTotal(name: string, given: number | undefined, ranks: number, local: number): number {
  if (given !== undefined) return given;
  if (ranks > 1) throw new InvalidInputError(`${name} of the whole mini-batch is needed when dpSize is ${ranks}`);
  return local;
}

/** A mean over no element is 0/0; with given totals, or for a sum, it is 0. */
function nothingValid(mode: LossAggMode, totals: BatchTotals, counts_S: Float64Array): boolean {
  if (mode === 'token-sum') return false;
  const total = mode === 'token-mean' ? totals.batchNumTokens : totals.globalBatchSize;
  return (total === undefined || total === 0) && nonZero(counts_S) === 0;
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

function nonZero(values: Float64Array): number {
  return values.reduce((total, value) => total + (value !== 0 ? 1 : 0), 0);
}
