/**
 * Patterns of verl's keys, as the tables write them: `*` is one name or a part of it, `**` any rest, and `(a|b)` a
 * choice.
 */

/** The pattern as a regular expression; what `**` matches is its group `rest`. */
export function patternOf(pattern: string): RegExp {
  let hasRest = false;
  const source = pattern.replace(/\*\*|\*|\./g, (token) => {
    if (token === '.') return '\\.';
    if (token === '*') return '[^.]*';
    const group = hasRest ? '(?:[^.]+(?:\\.[^.]+)*)' : '(?<rest>[^.]+(?:\\.[^.]+)*)';
    hasRest = true;
    return group;
  });
  return new RegExp(`^${source}$`);
}

/** Writes what a pattern matched into the other name of a row: `$1` is the first choice, `**` the rest. */
export function fillIn(name: string, match: RegExpExecArray): string {
  const rest = match.groups?.['rest'] ?? '';
  return name.replace('$1', () => match[1] ?? '').replace('**', () => rest);
}
