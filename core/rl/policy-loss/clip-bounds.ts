import type { PolicyLossConfig } from './types.ts';

/** Bounds of the probability ratio: [1 − low, 1 + high], each falling back to `clipRatio`. */
export function clipBounds(config: PolicyLossConfig): readonly [lowest: number, highest: number] {
  return [1 - (config.clipRatioLow ?? config.clipRatio), 1 + (config.clipRatioHigh ?? config.clipRatio)];
}
