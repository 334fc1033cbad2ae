/** log σ(x) and σ(x), without overflow for large |x|. */
import { exp } from '../math/exp.ts';
import { log1p } from '../math/log.ts';

export function logSigmoid(x: number): number {
  return Math.min(x, 0) - log1p(exp(-Math.abs(x)));
}

export function sigmoid(x: number): number {
  if (x >= 0) return 1 / (1 + exp(-x));
  const e = exp(x);
  return e / (1 + e);
}
