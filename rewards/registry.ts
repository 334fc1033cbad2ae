/**
 * Built-in scorers: one file and one line each. A row's `data_source` decides (routing.ts, or a scorer's own name),
 * unless `reward.scorer` names one.
 */
import { ENDPOINT_SCORERS } from '../core/endpoint.ts';
import { InvalidInputError } from '../core/errors.ts';
import { code, prepareCode } from './code.ts';
import { parseCodeTests } from './code/tests-of.ts';
import { exact } from './exact.ts';
import { groundTruthText } from './ground-truth.ts';
import { gsm8k } from './gsm8k.ts';
import { lastInteger, wantedInteger } from './last-integer.ts';
import { mathDapo } from './math-dapo.ts';
import { mathReward } from './math-reward.ts';
import { mathSymbolic } from './math-symbolic/index.ts';
import { none } from './none.ts';
import { rlla, wantedCalls } from './rlla.ts';
import { routeOf } from './routing.ts';
import { searchR1LikeQaEm, targetsOf } from './search-r1-like-qa-em.ts';
import type { CallLimits, Scorer, ScorerInput, ScorerSettings } from './types.ts';

export type BuiltinScorer = FunctionScorer | PythonScorer | EndpointScorer;

interface Declared {
  /**
   * Do equal arguments give equal scores, however fast the machine is? Deterministic runs refuse scorers without it.
   */
  readonly deterministic: boolean;
  /** @throws Error for a ground truth that it cannot use: such a row is refused before anything is sampled. */
  readonly checkTruth: (groundTruth: unknown) => unknown;
}

/** A function of this package. */
interface FunctionScorer extends Declared {
  readonly type: 'function';
  readonly score: Scorer;
  /** @throws what stands in its way on this machine, before it scores anything. */
  readonly prepare?: (settings: ScorerSettings, limits: CallLimits) => void;
}

/** A Python module of rewards/python with a function `compute_score`. */
interface PythonScorer extends Declared {
  readonly type: 'python';
  readonly module: string;
}

/** Asks reward.endpoint, from the reward worker itself: endpoint/scorers.ts. */
interface EndpointScorer extends Declared {
  readonly type: 'endpoint';
}

/** Looks at the ground truth as the scorer does when it scores a response. */
type Truth = (input: ScorerInput) => unknown;

const checking =
  (truth: Truth) =>
  (groundTruth: unknown): unknown =>
    truth({ dataSource: '', solutionStr: '', groundTruth });

/** A text, or a number. */
const asText =
  (name: string): Truth =>
  (input) =>
    groundTruthText(name, input);

const pure = (score: Scorer, truth: Truth): FunctionScorer => ({
  type: 'function',
  score,
  deterministic: true,
  checkTruth: checking(truth),
});

/**
 * A scorer in Python; its comparisons have time limits (rewards/python/limits.py), and one that takes too long is a
 * wrong answer.
 */
const inPython = (name: string, module: string): PythonScorer => ({
  type: 'python',
  module,
  deterministic: false,
  checkTruth: checking(asText(name)),
});

/** A scorer that runs programs, which have time limits. */
const ofPrograms: FunctionScorer = {
  type: 'function',
  score: code,
  deterministic: false,
  prepare: prepareCode,
  checkTruth: parseCodeTests,
};

const SCORERS: Readonly<Record<string, BuiltinScorer>> = {
  gsm8k: pure(gsm8k, asText('gsm8k')),
  math_reward: pure(mathReward, asText('math_reward')),
  math_dapo: pure(mathDapo, asText('math_dapo')),
  search_r1_like_qa_em: pure(searchR1LikeQaEm, targetsOf),
  rlla: pure(rlla, (input) => wantedCalls(groundTruthText('rlla', input), input)),
  geo3k: inPython('geo3k', 'geo3k.py'),
  prime_math: inPython('prime_math', 'prime_math.py'),
  math_verify: inPython('math_verify', 'math_verify_scorer.py'),
  math_symbolic: pure(mathSymbolic, asText('math_symbolic')),
  code: ofPrograms,
  exact: pure(exact, asText('exact')),
  last_integer: pure(lastInteger, wantedInteger),
  none: pure(none, () => undefined),
};

/** Names of the scorers that rows can choose by their data source. */
export const SCORER_NAMES: readonly string[] = Object.keys(SCORERS);

export const isKnownScorer = (name: string): boolean => SCORER_NAMES.includes(name) || ENDPOINT_SCORERS.includes(name);

/** @throws InvalidInputError with the known scorers. */
export function builtinScorer(name: string): BuiltinScorer {
  if (ENDPOINT_SCORERS.includes(name)) return { type: 'endpoint', deterministic: false, checkTruth: () => undefined };
  const found = Object.hasOwn(SCORERS, name) ? SCORERS[name] : undefined;
  if (found === undefined)
    throw new InvalidInputError(`unknown scorer "${name}"`, {
      hint: `one of ${[...SCORER_NAMES, ...ENDPOINT_SCORERS].join(', ')}`,
    });
  return found;
}

export function isPythonScorer(name: string): boolean {
  return builtinScorer(name).type === 'python';
}

/** A scorer that is a function of this package. @throws InvalidInputError for an unknown one, and for any other. */
export function functionScorer(name: string): FunctionScorer {
  const found = builtinScorer(name);
  if (found.type === 'python') throw new InvalidInputError(`the scorer ${name} runs in Python: ${found.module}`);
  if (found.type === 'endpoint')
    throw new InvalidInputError(`the scorer ${name} asks reward.endpoint, and has no process`);
  return found;
}

export const scorerByName = (name: string): Scorer => functionScorer(name).score;

/** Name of the scorer for a data source. @throws InvalidInputError when there is none. */
export function scorerNameFor(dataSource: string): string {
  const name = routeOf(dataSource)?.scorer ?? dataSource;
  if (SCORER_NAMES.includes(name)) return name;
  throw new InvalidInputError(`no scorer for data_source "${dataSource}"`, {
    hint: `set reward.scorer (${SCORER_NAMES.join(', ')}) or reward.custom_reward_function.path`,
  });
}
