/** Widths of text on a terminal. */
import { stripVTControlCharacters } from 'node:util';

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** Columns that a text takes; escape codes take none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of stripVTControlCharacters(text)) width += ZERO.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}

/** The text in at most `columns`, with an ellipsis where it was cut. Escape codes are given up when it is cut. */
export function fit(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const char of stripVTControlCharacters(text)) {
    width += displayWidth(char);
    if (width > columns - 1) break;
    kept += char;
  }
  return columns > 0 ? `${kept}…` : '';
}
