import type { PolicyLossConfig } from './types.ts';

/** Bounds of the probability ratio: [1 − low, 1 + high], each falling back to `clipRatio`. */
export function clipBounds(config: PolicyLossConfig): readonly [lowest: number, highest: number] {
  const [low, high] = clipWidths(config);
  return [1 - low, 1 + high];
}

/** `clip_ratio_low` and `clip_ratio_high`, each falling back to `clipRatio`. */
export function clipWidths(config: PolicyLossConfig): readonly [low: number, high: number] {
  return [config.clipRatioLow ?? config.clipRatio, config.clipRatioHigh ?? config.clipRatio];
}

/**
 * The share of a gradient that passes max(x, clamp(x)) where x is not clipped: all of it, and half on a bound, where
 * torch's max divides it between two equal values and its clamp passes nothing.
 */
export function passedShare(value: number, lowest: number, highest: number): number {
  return value === lowest || value === highest ? 0.5 : 1;
}
