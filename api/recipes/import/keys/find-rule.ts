/** Finds the row of the table for a path. */
import { fillIn, patternOf } from './pattern.ts';
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
    return rule.to === undefined ? rule : { ...rule, to: fillIn(rule.to, match) };
  }
  return undefined;
}
