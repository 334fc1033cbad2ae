/** Finds the row of the table for a path. */
import { RULES, type Rule } from './rules.ts';

interface Compiled {
  readonly pattern: RegExp;
  readonly rule: Rule;
}

const compiled: readonly Compiled[] = RULES.map((rule) => ({ pattern: patternOf(rule.verl), rule }));

/** The first rule that matches, with `$1` and `**` in `to` replaced by what they matched. */
export function findRule(path: string): Rule | undefined {
  for (const { pattern, rule } of compiled) {
    const match = pattern.exec(path);
    if (match === null) continue;
    const { to } = rule;
    if (to === undefined) return rule;
    const rest = match.groups?.['rest'] ?? '';
    return { ...rule, to: to.replace('$1', match[1] ?? '').replace('**', () => rest) };
  }
  return undefined;
}

/** `*`: one name or a part of it; `**`: one or more names. */
function patternOf(pattern: string): RegExp {
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
