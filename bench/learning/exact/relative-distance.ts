/** How far two gradients are apart. */

/**
 * ‖ours − theirs‖ / ‖theirs‖ over all parameters. NaN when one side lacks a parameter of the other, or has another size
 * of it.
 */
export function relativeDistance(
  ours: ReadonlyMap<string, Float32Array>,
  theirs: ReadonlyMap<string, Float32Array>,
): number {
  if (ours.size !== theirs.size) return Number.NaN;
  let [apart, norm] = [0, 0];
  for (const [name, expected] of theirs) {
    const values = ours.get(name);
    if (values?.length !== expected.length) return Number.NaN;
    for (const [i, value] of expected.entries()) {
      apart += (Number(values[i]) - value) ** 2;
      norm += value ** 2;
    }
  }
  return Math.sqrt(apart / norm);
}
