/**
 * Arrays of float64, for loops over all tokens of a batch. `at` reads lists of every kind, so the JavaScript engine
 * looks up the kind at each call, which costs more than the arithmetic around it. `valueAt` reads one kind, and is as
 * fast as plain indexing.
 */

/** The same array if it is one of float64, else a copy. */
export function float64(values: ArrayLike<number>): Float64Array {
  return values instanceof Float64Array ? values : new Float64Array(values);
}

/** Does what `at` does, for float64 only. @throws RangeError for a missing element. */
export function valueAt(values: Float64Array, index: number): number {
  const value = values[index];
  if (value === undefined) throw new RangeError(`no element ${index} in ${values.length} values`);
  return value;
}
