/** Derivatives by central differences, for checking the analytic ones. Only tests import it. */
import { at } from '../at.ts';

/**
 * d f / d x[i] for every i; NaN where the one-sided differences disagree, because f has a kink there (a clip, a max)
 * and no derivative.
 */
export function numericGradient(f: (x: Float64Array) => number, x: Float64Array, step = 1e-5): Float64Array {
  const middle = f(x);
  return x.map((value, i) => {
    const shifted = (moved: number) => f(x.map((other, j) => (j === i ? moved : other)));
    const forward = (shifted(value + step) - middle) / step;
    const backward = (middle - shifted(value - step)) / step;
    const smooth = Math.abs(forward - backward) <= 1e-3 * (1 + Math.abs(forward));
    return smooth ? (forward + backward) / 2 : NaN;
  });
}

/** Largest difference where the numeric gradient exists, relative to 1 + its size. */
export function gradientError(analytic: Float64Array, numeric: Float64Array): number {
  return analytic.reduce((worst, value, i) => {
    const want = at(numeric, i);
    return Number.isNaN(want) ? worst : Math.max(worst, Math.abs(value - want) / (1 + Math.abs(want)));
  }, 0);
}
