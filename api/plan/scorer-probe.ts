import { statSync } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { scorerByName, scorerNameFor } from '../../rewards/registry.ts';
import type { Probe } from './checks.ts';

/** Is the scorer there that the recipe names? Those that rows choose are looked at with the rows. */
export const scorerProbe: Probe = {
  name: 'scorer',
  look: async ({ kind, reward }) => {
    const { path, name } = reward.custom_reward_function;
    if (kind === 'sft') return undefined;
    if (path !== null) {
      if (!statSync(path, { throwIfNoEntry: false })?.isFile())
        throw new InvalidInputError(`there is no scorer file ${path}`);
      return { detail: `${name} of ${path}` };
    }
    if (reward.scorer === null) return undefined;
    scorerByName(reward.scorer);
    return { detail: reward.scorer };
  },
};

/** Throws InvalidInputError for a row that chooses a scorer which is not there. */
export function checkRowScorer(row: Readonly<Record<string, unknown>>, { kind, data, reward }: Recipe): void {
  if (kind === 'sft' || reward.scorer !== null || reward.custom_reward_function.path !== null) return;
  scorerNameFor(String(row[data.reward_fn_key]));
}
