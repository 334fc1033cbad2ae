/**
 * Built-in scorers: one file and one line each. A row's `data_source` decides (routing.ts, or a scorer's own name), unless
 * `reward.scorer` names one.
 */
import { InvalidInputError } from '../core/errors.ts';
import { exact } from './exact.ts';
import { gsm8k } from './gsm8k.ts';
import { lastInteger } from './last-integer.ts';
import { mathDapo } from './math-dapo.ts';
import { mathReward } from './math-reward.ts';
import { mathSymbolic } from './math-symbolic/index.ts';
import { rlla } from './rlla.ts';
import { routedScorer } from './routing.ts';
import { searchR1LikeQaEm } from './search-r1-like-qa-em.ts';
import type { Scorer } from './types.ts';

/** A function of this package, or a Python module of rewards/python with a function `compute_score`. */
export type BuiltinScorer = { readonly type: 'function'; readonly score: Scorer } | PythonScorer;
export interface PythonScorer {
  readonly type: 'python';
  readonly module: string;
}

const SCORERS: Readonly<Record<string, BuiltinScorer>> = {
  gsm8k: { type: 'function', score: gsm8k },
  math_reward: { type: 'function', score: mathReward },
  math_dapo: { type: 'function', score: mathDapo },
  search_r1_like_qa_em: { type: 'function', score: searchR1LikeQaEm },
  rlla: { type: 'function', score: rlla },
  geo3k: { type: 'python', module: 'geo3k.py' },
  prime_math: { type: 'python', module: 'prime_math.py' },
  math_verify: { type: 'python', module: 'math_verify_scorer.py' },
  math_symbolic: { type: 'function', score: mathSymbolic },
  exact: { type: 'function', score: exact },
  last_integer: { type: 'function', score: lastInteger },
};

export const SCORER_NAMES: readonly string[] = Object.keys(SCORERS);

/** @throws InvalidInputError with the known scorers. */
export function builtinScorer(name: string): BuiltinScorer {
  const found = Object.hasOwn(SCORERS, name) ? SCORERS[name] : undefined;
  if (found === undefined)
    throw new InvalidInputError(`unknown scorer "${name}"`, { hint: `one of ${SCORER_NAMES.join(', ')}` });
  return found;
}

export function isPythonScorer(name: string): boolean {
  return builtinScorer(name).type === 'python';
}

/** A scorer that is a function of this package. @throws InvalidInputError for an unknown one, and for one in Python. */
export function scorerByName(name: string): Scorer {
  const found = builtinScorer(name);
  if (found.type === 'python') throw new InvalidInputError(`the scorer ${name} runs in Python: ${found.module}`);
  return found.score;
}

/** Name of the scorer for a data source. @throws InvalidInputError when there is none. */
export function scorerNameFor(dataSource: string): string {
  const name = routedScorer(dataSource) ?? dataSource;
  if (SCORER_NAMES.includes(name)) return name;
  const what = name === dataSource ? '' : `: ${name}, which scores it in verl, is not built yet`;
  throw new InvalidInputError(`no scorer for data_source "${dataSource}"${what}`, {
    hint: `set reward.scorer (${SCORER_NAMES.join(', ')}) or reward.custom_reward_function.path`,
  });
}
