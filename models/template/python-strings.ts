/** Strings as Python sees them: sequences of code points, with Python's idea of white space. */

/** The white space that str.strip() removes and `\s` matches. */
export const space = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const leadingSpace = new RegExp(`^[${space}]+`);
const someSpace = new RegExp(`[${space}]+`);
const onlySpace = new RegExp(`^[${space}]+$`);
const surrogate = /[\ud800-\udfff]/;
const lineBreak = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

export function codePoints(text: string): string[] {
  return surrogate.test(text) ? Array.from(text) : text.split('');
}

export function lengthOf(text: string): number {
  return surrogate.test(text) ? Array.from(text).length : text.length;
}

/** Code-point index of a code-unit index. */
export function pointIndex(text: string, unitIndex: number): number {
  return unitIndex < 0 ? -1 : lengthOf(text.slice(0, unitIndex));
}

/** Code points [start, end); both bounds must be within 0..length. */
export function slicePoints(text: string, start: number, end: number): string {
  return surrogate.test(text) ? Array.from(text).slice(start, end).join('') : text.slice(start, end);
}

export function isSpace(text: string): boolean {
  return onlySpace.test(text);
}

export type Side = 'left' | 'right' | 'both';

/** Removes white space, or any of the code points in `chars`. */
export function strip(text: string, chars: string | undefined, side: Side): string {
  if (chars === undefined) {
    const rest = side === 'right' ? text : text.replace(leadingSpace, '');
    return side === 'left' ? rest : stripSpaceEnd(rest);
  }
  const set = new Set(codePoints(chars));
  const points = codePoints(text);
  let start = 0;
  let end = points.length;
  if (side !== 'right') while (start < end && set.has(points[start] as string)) start++;
  if (side !== 'left') while (end > start && set.has(points[end - 1] as string)) end--;
  return points.slice(start, end).join('');
}

/** A regular expression anchored at the end takes quadratic time on long runs in the middle; this does not. */
function stripSpaceEnd(text: string): string {
  let end = text.length;
  while (end > 0 && onlySpace.test(text[end - 1] as string)) end--;
  return text.slice(0, end);
}

/** split() without separator: splits at runs of white space and drops empty pieces; `limit` < 0 means no limit. */
export function splitSpace(text: string, limit: number): string[] {
  const parts: string[] = [];
  let rest = strip(text, undefined, 'left');
  while (rest !== '') {
    const match = limit >= 0 && parts.length === limit ? null : someSpace.exec(rest);
    if (match === null) {
      parts.push(rest);
      break;
    }
    parts.push(rest.slice(0, match.index));
    rest = rest.slice(match.index + match[0].length);
  }
  return parts;
}

/** The same from the right. */
export function splitSpaceRight(text: string, limit: number): string[] {
  if (limit < 0) return splitSpace(text, -1);
  const words = [...text.matchAll(new RegExp(`[^${space}]+`, 'g'))];
  if (words.length <= limit) return words.map((word) => word[0]);
  const tail = limit === 0 ? [] : words.slice(-limit);
  const cut = tail[0]?.index ?? text.length;
  return [strip(text.slice(0, cut), undefined, 'right'), ...tail.map((word) => word[0])].filter(
    (part, i) => i > 0 || part !== '',
  );
}

export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const match of text.matchAll(lineBreak)) {
    const end = match.index + match[0].length;
    lines.push(text.slice(start, keepEnds ? end : match.index));
    start = end;
  }
  if (start < text.length) lines.push(text.slice(start));
  return lines;
}

/** Compares by code points, not by UTF-16 units. */
export function compareText(a: string, b: string): number {
  if (!surrogate.test(a) && !surrogate.test(b)) return a < b ? -1 : a > b ? 1 : 0;
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** str.title(): a capital after every character that has no case. */
export function titleCase(text: string): string {
  let inWord = false;
  return codePoints(text)
    .map((point) => {
      const cased = point.toLowerCase() !== point.toUpperCase();
      const shown = cased ? (inWord ? point.toLowerCase() : titlePoint(point)) : point;
      inWord = cased;
      return shown;
    })
    .join('');
}

export function capitalize(text: string): string {
  const [first = '', ...rest] = codePoints(text);
  return titlePoint(first) + rest.join('').toLowerCase();
}

/** 'ß' becomes 'Ss', not 'SS'. */
function titlePoint(point: string): string {
  const [first = '', ...rest] = codePoints(point.toUpperCase());
  return first + rest.join('').toLowerCase();
}
