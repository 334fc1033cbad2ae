/** The components of a score that a run trains on: columns that every result of its scorer must have. */
import type { ScoreOutcome } from './host/host-types.ts';

type Scored = Extract<ScoreOutcome, { ok: true }>;

/** A result without one of the components is a failed sample: it has no reward, and 0 would be a wrong one. */
export function withComponents(outcomes: readonly ScoreOutcome[], names: readonly string[]): ScoreOutcome[] {
  return outcomes.map((outcome) => {
    const missing = outcome.ok ? names.find((name) => !hasNumber(outcome, name)) : undefined;
    return outcome.ok && missing !== undefined ? failure(outcome, missing) : outcome;
  });
}

/**
 * Does the result have a number of this name? A score without columns is its own column `acc`, as in
 * core/rl/reward-managers.
 */
export function hasNumber({ columns }: Scored, name: string): boolean {
  if (name === 'score' || (name === 'acc' && Object.keys(columns).length === 0)) return true;
  const value = Object.hasOwn(columns, name) ? columns[name] : undefined;
  return typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));
}

function failure({ columns }: Scored, name: string): ScoreOutcome {
  const value = columns[name] ?? null;
  const found = value === null ? '' : `, but ${JSON.stringify(value)}`;
  const has = ['score', ...Object.keys(columns)].join(', ');
  const reason = `the scorer returned no number ${JSON.stringify(name)} (algorithm.gdpo_reward_keys)${found}; it returned ${has}`;
  return { ok: false, code: 'bad-result', reason };
}
