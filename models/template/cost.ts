/** The cost of values in a rendering's budget. */
import { spend, spendOnText } from './budget.ts';
import { Dict, DictView, Tuple, type Value, textOf } from './values.ts';

/** Charges for reading or creating a whole value. */
export function spendOn(value: Value): void {
  const text = textOf(value);
  if (text !== undefined) return spendOnText(text.length);
  if (Array.isArray(value)) return spend(value.length);
  if (value instanceof Tuple || value instanceof DictView) return spend(value.items.length);
  if (value instanceof Dict) return spend(value.length());
}
