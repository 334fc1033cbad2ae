/** Puts a row beside the machine's own peak: which limit holds it, and how much of it was reached. */
import { rounded } from './measure.ts';
import type { Limit, RowResult } from './measurement.ts';

/**
 * The row with its bound, if every row that bounds it was measured before. The bound is in the row's own unit: the
 * smallest that its limits allow.
 */
export function withShare(row: RowResult, limits: readonly Limit[], measured: readonly RowResult[]): RowResult {
  const bounds = limits.map(({ peak, need }) => {
    const found = measured.find(({ name }) => name === peak);
    return { limit: peak, bound: found === undefined ? Number.NaN : found.value / need };
  });
  const [lowest] = bounds.toSorted((a, b) => a.bound - b.bound);
  if (lowest === undefined || bounds.some(({ bound }) => Number.isNaN(bound))) return row;
  const { limit, bound } = lowest;
  return { ...row, limit, bound: rounded(bound), share: rounded(row.value / bound) };
}
