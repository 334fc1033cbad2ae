/** Reads an element that must exist. The verifier's own copy: it shares no code with what writes the records. */

interface Indexed<T> {
  readonly length: number;
  readonly [index: number]: T;
}

/**
 * `list[index]`; a negative index counts from the end. Throws `RangeError` for a missing element: an index out of range
 * is a bug, and a silent 0 or `undefined` would become a wrong number elsewhere.
 */
export function at<T>(list: Indexed<T>, index: number): T {
  const element = list[index < 0 ? index + list.length : index];
  if (element === undefined) throw new RangeError(`no element ${index} in a list of ${list.length}`);
  return element;
}
