/**
 * The value of [lowest, highest] that is nearest; NaN stays NaN. In a loop over tokens comparisons are faster than
 * Math.min and Math.max, which also tell 0 from -0.
 */
export function clamp(value: number, lowest: number, highest: number): number {
  if (value > highest) return highest;
  if (value < lowest) return lowest;
  return value;
}
