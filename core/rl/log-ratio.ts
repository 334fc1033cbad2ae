import { clamp } from './clamp.ts';

/**
 * Log-ratios beyond ±20 are clamped, so that the ratio and its sums stay finite. The gradient is zero there, as that of
 * torch's clamp.
 */
export const LOG_RATIO_LIMIT = 20;

export function clampLogRatio(logRatio: number): number {
  return clamp(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
}
