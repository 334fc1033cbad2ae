import { at } from './at.ts';

/** Where parts of these lengths begin when they lie behind each other, and at the end where the last one ends. */
export function offsetsOf(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = at(offsets, i) + length));
  return offsets;
}
