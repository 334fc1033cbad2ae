/** The indices of the largest values, without sorting all of them. */
import { at } from '../../at.ts';

/** In ascending order of index. Among equal values the first are taken; NaN counts as the largest value. */
export function largestIndices(values: Float64Array, count: number): Int32Array {
  const indices = new Int32Array(count);
  if (count === 0) return indices;
  const ranked = values.map((value) => (Number.isNaN(value) ? Infinity : value));
  const threshold = selectLargest(ranked.slice(), count);
  let above = 0;
  for (let i = 0; i < ranked.length; i++) if ((ranked[i] as number) > threshold) above++;
  let equal = count - above;
  let taken = 0;
  for (let i = 0; i < ranked.length && taken < count; i++) {
    const value = ranked[i] as number;
    if (value > threshold || (value === threshold && equal-- > 0)) indices[taken++] = i;
  }
  return indices;
}

/** The `count`-th largest value: quickselect (Hoare 1961), which reorders the values. Linear in their number on average. */
function selectLargest(values: Float64Array, count: number): number {
  const wanted = count - 1;
  let [first, last] = [0, values.length - 1];
  while (first < last) {
    const pivot = medianOfThree(at(values, first), at(values, (first + last) >> 1), at(values, last));
    let [left, right] = [first, last];
    while (left <= right) {
      while ((values[left] as number) > pivot) left++;
      while ((values[right] as number) < pivot) right--;
      if (left > right) break;
      const swapped = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = swapped;
    }
    if (wanted <= right) last = right;
    else if (wanted >= left) first = left;
    else break;
  }
  return at(values, wanted);
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
