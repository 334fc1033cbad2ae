/**
 * petrel's own scorer for mathematics: 1 when the response's final answer equals the ground truth, else 0.
 * docs/do/scorers.md shows where it differs from math_reward and math_dapo.
 *
 * - The answer is the content of the last complete box, or the rest of the last line with `Answer:`; extract.ts.
 * - Both texts are read as numbers, expressions, sets, points, intervals, equations, inequalities, matrices or words;
 *   answer.ts.
 * - Expressions are compared exactly, without SymPy and without evaluating anything; algebra.ts. What has no form that
 *   can be read is compared as a text.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { badGroundTruth, groundTruthText } from '../ground-truth.ts';
import { strip } from '../python-text.ts';
import type { Scorer, ScorerSettings } from '../types.ts';
import { readAnswer } from './answer.ts';
import { areEqualAnswers } from './compare.ts';
import { finalAnswer } from './extract.ts';
import { cleanLatex } from './latex.ts';
import type { Comparison } from './quantity.ts';

/**
 * Settings: `tolerance` (0): relative, for numbers; `calculations` (false): 2^10 is right where the ground truth is
 * 1024. Also returns `acc`, and `pred`: the answer as the response has it.
 */
export const mathSymbolic: Scorer = (input, settings) => {
  const truth = groundTruthText('math_symbolic', input);
  if (strip(truth) === '') throw badGroundTruth('math_symbolic', input, 'a text that is not empty');
  const rules = { tolerance: toleranceOf(settings), calculations: Boolean(settings['calculations'] ?? false) };
  const pred = finalAnswer(input.solutionStr);
  const acc = pred !== undefined && areEqual(pred, truth, rules);
  return { score: Number(acc), acc, pred: pred ?? null };
};

function areEqual(answer: string, truth: string, rules: Comparison): boolean {
  return cleanLatex(answer) === cleanLatex(truth) || areEqualAnswers(readAnswer(answer), readAnswer(truth), rules);
}

function toleranceOf(settings: ScorerSettings): number {
  const tolerance = settings['tolerance'] ?? 0;
  if (typeof tolerance === 'number' && tolerance >= 0 && tolerance < 1) return tolerance;
  throw new InvalidInputError(
    `math_symbolic: tolerance must be a number from 0 to below 1, got ${JSON.stringify(tolerance)}`,
    { hint: 'change reward.reward_kwargs.tolerance' },
  );
}
