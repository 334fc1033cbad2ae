/** What the forms of distillation share. */
import { clamp } from '../clamp.ts';

/** Smallest and largest loss of the valid tokens, before it is clamped (verl's names); NaN without a valid token. */
export function lossRange(loss_T: Float64Array, mask_T: Float64Array): Record<string, number> {
  let min = NaN;
  let max = NaN;
  for (let t = 0; t < loss_T.length; t++) {
    if ((mask_T[t] as number) === 0) continue;
    const loss = loss_T[t] as number;
    if (!(min <= loss)) min = loss;
    if (!(max >= loss)) max = loss;
  }
  return { 'distillation/loss_min': min, 'distillation/loss_max': max };
}

/**
 * Clamps to ±limit in place, on both sides because k1 can be negative. No derivative passes on the limit and beyond, as
 * in torch.
 */
export function clampLosses(loss_T: Float64Array, limit: number | undefined, derivative_T?: Float64Array): void {
  if (limit === undefined) return;
  for (let t = 0; t < loss_T.length; t++) {
    const loss = loss_T[t] as number;
    if (Math.abs(loss) < limit) continue;
    loss_T[t] = clamp(loss, -limit, limit);
    if (derivative_T !== undefined) derivative_T[t] = 0;
  }
}
