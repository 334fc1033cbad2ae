/** Built-in scorers: one file and one line each. A row's `data_source` decides, unless `reward.scorer` names one. */
import { InvalidInputError } from '../core/errors.ts';
import { exact } from './exact.ts';
import { gsm8k } from './gsm8k.ts';
import { lastInteger } from './last-integer.ts';
import type { Scorer } from './types.ts';

interface Entry {
  readonly name: string;
  readonly scorer: Scorer;
  /** Values of `data_source` that it scores, besides its own name. */
  readonly sources: readonly string[];
}

const SCORERS: readonly Entry[] = [
  { name: 'gsm8k', scorer: gsm8k, sources: ['openai/gsm8k'] },
  { name: 'exact', scorer: exact, sources: [] },
  { name: 'last_integer', scorer: lastInteger, sources: [] },
];

export const SCORER_NAMES: readonly string[] = SCORERS.map((entry) => entry.name);

/** @throws InvalidInputError with the known scorers. */
export function scorerByName(name: string): Scorer {
  const found = SCORERS.find((entry) => entry.name === name);
  if (found === undefined) {
    throw new InvalidInputError(`unknown scorer "${name}"`, { hint: `one of ${SCORER_NAMES.join(', ')}` });
  }
  return found.scorer;
}

/** Name of the scorer for a data source. @throws InvalidInputError when there is none. */
export function scorerNameFor(dataSource: string): string {
  const found = SCORERS.find((entry) => entry.name === dataSource || entry.sources.includes(dataSource));
  if (found === undefined) {
    throw new InvalidInputError(`no scorer for data_source "${dataSource}"`, {
      hint: `set reward.scorer (${SCORER_NAMES.join(', ')}) or reward.custom_reward_function.path`,
    });
  }
  return found.name;
}
