/**
 * Decimal digits of a float, rounded half to even on its exact binary value, as Python does. `toFixed` rounds ties up.
 */

/** Does what toFixed does, but rounds half to even; `digits` from 0 to 45, |value| below 1e21. */
export function toFixedEven(value: number, digits: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 1e21 || digits > 45) return value.toFixed(Math.min(digits, 100));
  const extra = 100 - digits;
  const exact = magnitude.toFixed(100);
  const cut = exact.length - extra;
  const kept = exact.slice(0, cut).replace(/\.$/, '');
  const tie = /^\.?50*$/.test(exact.slice(cut)) && Number(kept.at(-1)) % 2 === 0;
  const shown = tie ? kept : magnitude.toFixed(digits);
  return value < 0 || Object.is(value, -0) ? `-${shown}` : shown;
}
