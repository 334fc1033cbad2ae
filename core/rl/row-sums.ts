import { at } from '../at.ts';
import { float64 } from './float64.ts';
import { requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

/** Σ x·m of each row; a value outside the mask has no effect. Of log-probs, it is the log-prob of the sequence. */
export function rowSums(values_T: Numbers, rows: RaggedRows): Float64Array {
  requireTokens('values', values_T, tokenCount(rows));
  const [x_T, mask_T] = [float64(values_T), float64(rows.mask_T)];
  const sums_S = new Float64Array(rowCount(rows));
  for (let s = 0; s < sums_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    let sum = 0;
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const mask = mask_T[t] as number;
      if (mask !== 0) sum += (x_T[t] as number) * mask;
    }
    sums_S[s] = sum;
  }
  return sums_S;
}

/** The reverse: writes the derivative by the sum of row s on each of its valid tokens. */
export function spreadOverRow(
  slope: number,
  s: number,
  rows: RaggedRows,
  mask_T: Float64Array,
  derivative_T: Float64Array,
): void {
  const end = at(rows.offsets_S1, s + 1);
  for (let t = at(rows.offsets_S1, s); t < end; t++) {
    const mask = mask_T[t] as number;
    if (mask !== 0) derivative_T[t] = slope * mask;
  }
}
