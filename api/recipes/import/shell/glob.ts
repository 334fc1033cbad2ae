/** Patterns of `case`: `*` and `?`; a backslash makes the next character literal. */

/** Does the whole text match? undefined: the pattern has something that is not read (`[a-z]`), or is very long. */
export function matchesGlob(pattern: string, text: string): boolean | undefined {
  const units: readonly string[] = pattern.match(/\\.|./gs) ?? [];
  if (units.length > 1000 || units.includes('[')) return undefined;
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    const unit = units[p];
    if (unit === '*') {
      star = p;
      mark = t;
      p += 1;
    } else if (unit === '?' || (unit !== undefined && unit === literal(text[t], unit))) {
      p += 1;
      t += 1;
    } else if (star >= 0) {
      p = star + 1;
      mark += 1;
      t = mark;
    } else return false;
  }
  while (units[p] === '*') p += 1;
  return p === units.length;
}

/** The text's character in the form in which `unit` has it. */
const literal = (char: string | undefined, unit: string): string | undefined =>
  char !== undefined && unit.length === 2 ? `\\${char}` : char;

/** A text as a pattern that matches only itself. */
export function globOf(text: string): string {
  return text.replace(/[\\*?[]/g, '\\$&');
}
