/**
 * Is what a program printed the expected output? (verl: `prime_code/testing_util.py`, from APPS.) One of these
 * suffices:
 *
 *   the text is equal, without white space around it, or around each of its lines
 *   the lines are equal, without empty lines of both and without white space around the expected ones
 *   the same holds with every line read as a number: |a - b| <= 1e-8 + 1e-5 |b|, unless all lines are whole numbers
 *
 * verl's code compares sets of words, too, but never uses the result.
 */

/** White space and line breaks as Python has them. */
const space = '[\\s\\x1c-\\x1f\\x85]';
const around = new RegExp(`^(?:(?!\\ufeff)${space})+|(?:(?!\\ufeff)${space})+$`, 'gu');
const lineBreaks = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/u;

export function isExpectedOutput(printed: string, expected: string): boolean {
  const lines = linesOf(printed);
  const wanted = strip(expected);
  if (strip(lines.join('\n')) === wanted || strip(lines.map(strip).join('\n')) === wanted) return true;
  const wantedLines = expected
    .split('\n')
    .filter((line) => line !== '')
    .map(strip);
  const filled = lines.filter((line) => line !== '');
  return areEqual(lines, wantedLines) || areEqual(filled, wantedLines) || areClose(filled, wantedLines);
}

/** Python's `str.splitlines`: the text after the last line break is a line only if it is not empty. */
function linesOf(text: string): string[] {
  const lines = text.split(lineBreaks);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

const strip = (text: string) => text.replace(around, '');

function areEqual(lines: readonly string[], others: readonly string[]): boolean {
  return lines.length === others.length && lines.every((line, i) => line === others[i]);
}

function areClose(lines: readonly string[], wanted: readonly string[]): boolean {
  if (lines.length !== wanted.length || [...lines, ...wanted].every((line) => /^\p{Nd}+$/u.test(line))) return false;
  return lines.every((line, i) => isClose(pythonFloat(line), pythonFloat(wanted[i] ?? '')));
}

/** numpy's `isclose` with its defaults. */
function isClose(a: number, b: number): boolean {
  return a === b || (Number.isFinite(b) && Math.abs(a - b) <= 1e-8 + 1e-5 * Math.abs(b));
}

/** Python's `float(text)`; NaN where it raises an error, and for NaN. */
function pythonFloat(text: string): number {
  const bare = withPlainDigits(strip(text));
  if (/^[+-]?inf(inity)?$/i.test(bare)) return bare.startsWith('-') ? -Infinity : Infinity;
  const isNumber = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/i.test(bare);
  return isNumber ? Number(bare.replaceAll('_', '')) : NaN;
}

/** Digits of other scripts as 0 to 9. */
function withPlainDigits(text: string): string {
  return text.replaceAll(/(?![0-9])\p{Nd}/gu, (digit) => String(valueOf(digit.codePointAt(0) ?? 0)));
}

/** Unicode has each script's digits in a row; those of mathematics follow one another. */
function valueOf(code: number): number {
  if (code >= 0x1d7ce && code <= 0x1d7ff) return (code - 0x1d7ce) % 10;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
  return value;
}
