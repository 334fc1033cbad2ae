/** Reading an element that must be there. */

interface Indexed<T> {
  readonly length: number;
  readonly [index: number]: T;
}

/**
 * `list[index]`; a negative index counts from the end. Throws `RangeError` when there is no such element: an index out of
 * range is a fault of the program, and a silent 0 or `undefined` would become a wrong number somewhere else.
 */
export function at<T>(list: Indexed<T>, index: number): T {
  const element = list[index < 0 ? index + list.length : index];
  if (element === undefined) throw new RangeError(`no element ${index} in a list of ${list.length}`);
  return element;
}
