/**
 * Derivatives by central differences, for checking analytic ones: in tests, and of a user's own loss when a run starts.
 */

/**
 * d f / d x[i] for every i; NaN where f has a kink (a clip, a max) within a step, and so no derivative. In a smooth
 * place the two one-sided differences come together in proportion to the step; at a kink they stay apart, however small
 * it is.
 */
export function numericGradient(f: (x: Float64Array) => number, x: Float64Array, step = 1e-5): Float64Array {
  const middle = f(x);
  return x.map((value, i) => {
    const at = (moved: number) => f(x.map((other, j) => (j === i ? moved : other)));
    const oneSided = (h: number) => [(at(value + h) - middle) / h, (middle - at(value - h)) / h] as const;
    const [forward, backward] = oneSided(step);
    const [nearForward, nearBackward] = oneSided(step / 2);
    const apart = forward - backward - 2 * (nearForward - nearBackward);
    return Math.abs(apart) <= 2e-6 * (1 + Math.abs(forward)) ? (forward + backward) / 2 : NaN;
  });
}
