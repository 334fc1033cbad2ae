/** The indices of the largest values, without sorting all of them. */
import { at } from '../../at.ts';

/**
 * Indices of the largest values, in ascending order. Among equal values the first are taken; NaN counts as the largest
 * value.
 */
export function largestIndices(values: Float64Array, count: number): Int32Array {
  const indices = new Int32Array(count);
  if (count === 0) return indices;
  const threshold = smallestOfLargest(values, count);
  let above = 0;
  for (let i = 0; i < values.length; i++) if (ranked(values[i] as number) > threshold) above++;
  let equal = count - above;
  let taken = 0;
  for (let i = 0; i < values.length && taken < count; i++) {
    const value = ranked(values[i] as number);
    if (value > threshold || (value === threshold && equal-- > 0)) indices[taken++] = i;
  }
  return indices;
}

const ranked = (value: number): number => (Number.isNaN(value) ? Infinity : value);

/**
 * The `count`-th largest value. A heap keeps the largest so far; nearly all values of a batch are below its smallest.
 */
function smallestOfLargest(values: Float64Array, count: number): number {
  const heap = new Float64Array(count).fill(-Infinity);
  for (let i = 0; i < values.length; i++) {
    const value = ranked(values[i] as number);
    if (value > (heap[0] as number)) replaceSmallest(heap, value);
  }
  return at(heap, 0);
}

/** Replaces the first element of a heap, which is its smallest. */
function replaceSmallest(heap: Float64Array, value: number): void {
  let hole = 0;
  for (;;) {
    let child = 2 * hole + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child++;
    if ((heap[child] as number) >= value) break;
    heap[hole] = heap[child] as number;
    hole = child;
  }
  heap[hole] = value;
}
