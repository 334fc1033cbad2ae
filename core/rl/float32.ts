/** The same array if it is one of float32, else a copy. It makes no list of the values, as `Float32Array.from` may. */
export function float32(values: ArrayLike<number>): Float32Array {
  return values instanceof Float32Array ? values : new Float32Array(values);
}
