/** verl's paths in one form: without the wrapper, and with today's names for those of other dates. */
import { FORMER_NAMES, type FormerName, SUPERVISED_NAMES } from './former-names.ts';
import { fillIn, patternOf } from './pattern.ts';

const WRAPPER = 'actor_rollout_ref.';

interface Compiled {
  readonly pattern: RegExp;
  readonly row: FormerName;
}

const compile = (rows: readonly FormerName[]): readonly Compiled[] =>
  rows.map((row) => ({ pattern: patternOf(row.former), row }));
const tables = { rl: compile(FORMER_NAMES), sft: compile([...SUPERVISED_NAMES, ...FORMER_NAMES]) } as const;

/** Today's path of a key, and the row of the table that renamed it. */
export interface PlainPath {
  readonly path: string;
  readonly former?: FormerName;
}

/**
 * `actor_rollout_ref.actor.optim.lr` → `actor.optim.lr`; `reward_model.overlong_buffer.len` →
 * `reward.overlong_buffer.len`.
 */
export function plainPath(path: string, kind: 'rl' | 'sft'): PlainPath {
  const bare = path.startsWith(WRAPPER) ? path.slice(WRAPPER.length) : path;
  for (const { pattern, row } of tables[kind]) {
    const match = pattern.exec(bare);
    if (match !== null) return { path: fillIn(row.now, match), former: row };
  }
  return { path: bare };
}

/** When verl used a name, for people: `verl’s name until 0.7 (2026-01)`. */
export const datesOf = ({ since, until }: FormerName): string =>
  since === undefined ? `verl’s name until ${until}` : `verl’s name from ${since} until ${until}`;
