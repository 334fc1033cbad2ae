/**
 * From a loss per token to the loss of a batch (verl: `agg_loss`, key `actor.loss_agg_mode`).
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
  longestRow,
  maskCounts,
  requireTokens,
  rowCount,
  tokenCount,
  type Numbers,
  type RaggedRows,
} from './ragged.ts';

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
  /** d value / d x at each token; 0 where the mask is 0. */
  readonly weights_T: Float64Array;
}

/** Totals of a mini-batch, by which each of its micro-batches divides. */
export function batchTotals(rows: RaggedRows, lossScaleFactor?: number): BatchTotals {
  const batchNumTokens = maskCounts(rows).reduce((sum, count) => sum + count, 0);
  return { dpSize: 1, batchNumTokens, globalBatchSize: rowCount(rows), lossScaleFactor };
}

/** @throws InvalidInputError on an unknown mode, or when dpSize > 1 comes without the total the mode divides by. */
export function aggregate(
  values_T: Numbers,
  rows: RaggedRows,
  mode: LossAggMode,
  totals: BatchTotals = {},
): Aggregated {
  requireTokens('loss', values_T, tokenCount(rows));
  const perSequence = mode !== 'token-mean' && mode !== 'token-sum';
  const weights_T = tokenWeights(rows, mode, totals);
  let value = nothingValid(mode, totals, rows) ? NaN : 0;
  for (let t = 0; t < weights_T.length; t++) {
    if (at(weights_T, t) !== 0) value += at(values_T, t) * at(weights_T, t);
    // verl multiplies by the mask in the per-sequence modes: a NaN at mask 0 of a row that counts shows in the loss.
    else if (perSequence && !Number.isFinite(at(values_T, t)) && rowIsValid(rows, t)) value = NaN;
  }
  return { value, weights_T };
}

function tokenWeights(rows: RaggedRows, mode: LossAggMode, totals: BatchTotals): Float64Array {
  const counts_S = maskCounts(rows);
  const weightOfRow = rowWeight(rows, mode, totals, counts_S);
  const weights_T = new Float64Array(tokenCount(rows));
  for (let s = 0; s < counts_S.length; s++) {
    if (at(counts_S, s) === 0) continue;
    const weight = weightOfRow(at(counts_S, s));
    for (let t = at(rows.offsets_S1, s); t < at(rows.offsets_S1, s + 1); t++) {
      if (at(rows.mask_T, t) !== 0) weights_T[t] = weight * at(rows.mask_T, t);
    }
  }
  return weights_T;
}

/** The weight of a valid token as a function of the number of valid tokens in its row. */
function rowWeight(
  rows: RaggedRows,
  mode: LossAggMode,
  totals: BatchTotals,
  counts_S: Float64Array,
): (validTokens: number) => number {
  const ranks = totals.dpSize ?? 1;
  const tokens = () => requireTotal('batchNumTokens', totals.batchNumTokens, ranks, sum(counts_S));
  const sequences = () => requireTotal('globalBatchSize', totals.globalBatchSize, ranks, nonZero(counts_S));
  switch (mode) {
    case 'token-mean': {
      const weight = ranks / tokens();
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
function nothingValid(mode: LossAggMode, totals: BatchTotals, rows: RaggedRows): boolean {
  if (mode === 'token-sum') return false;
  const total = mode === 'token-mean' ? totals.batchNumTokens : totals.globalBatchSize;
  return (total === undefined || total === 0) && nonZero(maskCounts(rows)) === 0;
}

function rowIsValid(rows: RaggedRows, token: number): boolean {
  for (let s = 0; s < rowCount(rows); s++) {
    if (token >= at(rows.offsets_S1, s + 1)) continue;
    for (let t = at(rows.offsets_S1, s); t < at(rows.offsets_S1, s + 1); t++) if (at(rows.mask_T, t) !== 0) return true;
    return false;
  }
  return false;
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

function nonZero(values: Float64Array): number {
  return values.reduce((total, value) => total + (value !== 0 ? 1 : 0), 0);
}
