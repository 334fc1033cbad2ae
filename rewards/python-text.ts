/**
 * Python's rules for text, where they differ from JavaScript's and a reference scorer depends on them.
 *
 * - Python counts code points, JavaScript counts UTF-16 units: an emoji has length 1 there and 2 here.
 * - White space (`str.strip`, `str.split`, `\s`) includes U+001C to U+001F and U+0085, and excludes U+FEFF.
 * - `.` matches everything but "\n"; here it excludes "\r", U+2028 and U+2029, too. Write `[^\n]`.
 * - `\w` and `\b` know every letter and digit of Unicode.
 * - `str.isdigit` accepts digits of all scripts, superscripts and circled digits.
 */

/** Python's white space, for use inside the brackets of a regular expression with the flag `u`. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

// Without the look behind, each blank of a long run inside the text would be the start of one more search to its end.
const surroundingSpace = new RegExp(`^[${SPACE}]+|(?<![${SPACE}])[${SPACE}]+$`, 'gu');
const spaceRun = new RegExp(`[${SPACE}]+`, 'u');

/** Decimal digits of all scripts, and the characters of Unicode's type "digit" that are no decimals (²,①,…). */
const digits =
  /^[\p{Nd}\xb2\xb3\xb9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}]+$/u;

/** `text[-count:]`. */
export function lastCodePoints(text: string, count: number): string {
  if (text.length <= count) return text;
  // Twice as many units hold at least as many code points; a pair that the cut breaks is not among the last ones.
  return [...text.slice(-2 * count)].slice(-count).join('');
}

/** `text.strip()`. */
export function strip(text: string): string {
  return text.replace(surroundingSpace, '');
}

/** `text.split()`: the words between runs of white space. */
export function words(text: string): string[] {
  return text.split(spaceRun).filter((word) => word !== '');
}

/** `text.isdigit()`. */
export function isDigits(text: string): boolean {
  return digits.test(text);
}

/** `text.count(part)` for a part that is not empty. */
export function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}
