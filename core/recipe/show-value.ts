const LONGEST = 60;

/** A value for a message: JSON, truncated when long; small numbers as people write learning rates, 1e-5. */
export function showValue(value: unknown): string {
  if (typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-3) return value.toExponential();
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}
