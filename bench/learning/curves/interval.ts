/** The 95 % interval of a difference of means, by Welch's t-test: the two sides may differ in their spread. */
import { InvalidInputError } from '../../../core/errors.ts';

export interface Difference {
  readonly mean: number;
  /** Ends of the 95 % interval. */
  readonly low: number;
  readonly high: number;
}

/** mean(a) − mean(b). Throws InvalidInputError for fewer than two values on a side. */
export function difference(a: readonly number[], b: readonly number[]): Difference {
  if (a.length < 2 || b.length < 2)
    throw new InvalidInputError(`an interval needs two seeds on each side, got ${a.length} and ${b.length}`);
  const [ofA, ofB] = [squaredErrorOfMean(a), squaredErrorOfMean(b)];
  const mean = meanOf(a) - meanOf(b);
  const error = Math.sqrt(ofA + ofB);
  if (error === 0) return { mean, low: mean, high: mean };
  const degrees = (ofA + ofB) ** 2 / (ofA ** 2 / (a.length - 1) + ofB ** 2 / (b.length - 1));
  const half = upperQuantile(degrees) * error;
  return { mean, low: mean - half, high: mean + half };
}

export const meanOf = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

function squaredErrorOfMean(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1) / values.length;
}

/**
 * The 0.975 quantile of Student's t, by the expansion around the normal one (Abramowitz and Stegun, 26.7.5): to 0.001
 * from 7 degrees of freedom on.
 */
export function upperQuantile(degrees: number): number {
  const x = 1.959964;
  return (
    x +
    (x ** 3 + x) / (4 * degrees) +
    (5 * x ** 5 + 16 * x ** 3 + 3 * x) / (96 * degrees ** 2) +
    (3 * x ** 7 + 19 * x ** 5 + 17 * x ** 3 - 15 * x) / (384 * degrees ** 3)
  );
}
