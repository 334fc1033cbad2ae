/**
 * Arrays of float64 that a computation over all tokens needs only while it runs. They are kept for the next one: a new
 * array for millions of tokens costs more than a loop over it, in memory that is touched for the first time and in
 * garbage collection.
 */

/** The limit of arrays, which is more than any computation takes. */
const most = 16;

/** Free arrays. */
let kept: Float64Array[] = [];
/** Arrays that the running computation has taken; undefined when none runs. */
let taken: Float64Array[] | undefined;

/**
 * Runs `work`. Its scratch arrays belong to the next computation when it has returned, so none may be in its result.
 */
export function withScratch<T>(work: () => T): T {
  if (taken !== undefined) return work();
  taken = [];
  try {
    return work();
  } finally {
    kept = [...taken, ...kept].sort((a, b) => b.length - a.length).slice(0, most);
    taken = undefined;
  }
}

/** An array of any content; outside of `withScratch` a new one. */
export function scratch(length: number): Float64Array {
  if (taken === undefined) return new Float64Array(length);
  const fitting = kept.findIndex((array) => array.length >= length);
  const [array = new Float64Array(length)] = fitting < 0 ? [] : kept.splice(fitting, 1);
  taken.push(array);
  return array.length === length ? array : array.subarray(0, length);
}

/** The same array if it is one of float64, else a copy in a scratch array. */
export function scratchFloat64(values: ArrayLike<number>): Float64Array {
  if (values instanceof Float64Array) return values;
  const copy = scratch(values.length);
  copy.set(values);
  return copy;
}
