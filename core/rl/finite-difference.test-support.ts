/** Comparison of analytic derivatives with central differences. Only tests import it. */
import { at } from '../at.ts';

export { numericGradient } from './finite-difference.ts';

/** Largest difference where the numeric gradient exists, relative to 1 + its size. */
export function gradientError(analytic: Float64Array, numeric: Float64Array): number {
  return analytic.reduce((worst, value, i) => {
    const want = at(numeric, i);
    return Number.isNaN(want) ? worst : Math.max(worst, Math.abs(value - want) / (1 + Math.abs(want)));
  }, 0);
}

/** Number of places in which `gradientError` compares. A property that compares nowhere proves nothing. */
export function comparedPlaces(numeric: Float64Array): number {
  return numeric.reduce((count, value) => count + (Number.isNaN(value) ? 0 : 1), 0);
}
