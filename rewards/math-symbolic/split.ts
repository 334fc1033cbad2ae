/** Parts of a formula outside of brackets. */

const word = /\\[a-zA-Z]+|\\.|[\s\S]/gu;
const opening = /^(?:[([{]|\\\{|\\langle|\\begin)$/;
const closing = /^(?:[)\]}]|\\\}|\\rangle|\\end)$/;

export interface Split {
  readonly parts: readonly string[];
  /** What stood between the parts. */
  readonly separators: readonly string[];
}

/**
 * Splits at words outside of all brackets: characters and commands for which `isSeparator` is true. Brackets of
 * different kinds close each other, since [0, 1) is an interval.
 */
export function splitAt(text: string, isSeparator: (one: string) => boolean): Split {
  const [parts, separators]: [string[], string[]] = [[], []];
  let [depth, start] = [0, 0];
  for (const { 0: one, index } of text.matchAll(word)) {
    if (opening.test(one)) depth += 1;
    else if (closing.test(one)) depth -= 1;
    else if (depth === 0 && isSeparator(one)) {
      parts.push(text.slice(start, index));
      separators.push(one);
      start = index + one.length;
    }
  }
  return { parts: [...parts, text.slice(start)], separators };
}

export interface Bracketed {
  readonly open: string;
  readonly inside: string;
  readonly close: string;
}

/** A text that one pair of brackets encloses; undefined for others. */
export function bracketed(text: string): Bracketed | undefined {
  const words = [...text.matchAll(word)];
  const open = words[0]?.[0] ?? '';
  const last = words.at(-1);
  if (!opening.test(open) || open === '\\begin' || last === undefined || !closing.test(last[0])) return undefined;
  let depth = 0;
  for (const { 0: one, index } of words) {
    if (opening.test(one)) depth += 1;
    else if (closing.test(one)) depth -= 1;
    if (depth === 0 && index < last.index) return undefined;
  }
  return depth === 0 ? { open, inside: text.slice(open.length, last.index), close: last[0] } : undefined;
}
