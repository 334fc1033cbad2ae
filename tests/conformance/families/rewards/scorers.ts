/** Scorers that are functions of rewards/. */
import { extractGsm8k, gsm8k, type Gsm8kMethod } from '../../../../rewards/gsm8k.ts';
import { mathDapo, normalizeFinalAnswer } from '../../../../rewards/math-dapo.ts';
import { lastBox, mathReward, normalizeMath } from '../../../../rewards/math-reward.ts';
import { toScored } from '../../../../rewards/result.ts';
import { rlla } from '../../../../rewards/rlla.ts';
import { extractQaAnswer, normalizeQaAnswer, searchR1LikeQaEm } from '../../../../rewards/search-r1-like-qa-em.ts';
import type { Scored, Scorer, ScorerInput, ScorerSettings } from '../../../../rewards/types.ts';
import { inputsOf, paramsOf } from '../../padded.ts';
import type { GoldenCase, Outcome } from '../../types.ts';

export function scoreGsm8k(testCase: GoldenCase): Outcome {
  const input = scorerInput(testCase, 'openai/gsm8k');
  const extracted = extractGsm8k(input.solutionStr, paramsOf(testCase).string('method') as Gsm8kMethod);
  return { extracted: extracted ?? null, score: scored(gsm8k, input, testCase.params).score };
}

export function scoreMathReward(testCase: GoldenCase): Outcome {
  const input = scorerInput(testCase, 'lighteval/MATH');
  return {
    score: scored(mathReward, input, {}).score,
    last_boxed: lastBox(input.solutionStr) ?? null,
    // Where the reference raises, the type of its error is information only.
    normalized_ground_truth:
      normalizeMath(String(input.groundTruth)) ?? refusalIn(testCase.expected?.['normalized_ground_truth']),
  };
}

function refusalIn(expected: unknown): unknown {
  return typeof expected === 'object' && expected !== null && 'error' in expected ? expected : null;
}

export function scoreMathDapo(testCase: GoldenCase): Outcome {
  const input = scorerInput(testCase, 'math_dapo');
  const { score, columns } = scored(mathDapo, input, testCase.params);
  return { score, ...columns, normalized_ground_truth: normalizeFinalAnswer(String(input.groundTruth)) };
}

export function scoreSearchQa(testCase: GoldenCase): Outcome {
  const target = inputsOf(testCase).get('target');
  const input = { ...scorerInput(testCase, 'searchR1_nq'), groundTruth: { target } };
  const extracted = extractQaAnswer(input.solutionStr);
  return {
    score: scored(searchR1LikeQaEm, input, testCase.params).score,
    score_subem: scored(searchR1LikeQaEm, input, { ...testCase.params, substring: true }).score,
    extracted: extracted ?? null,
    normalized: extracted === undefined ? null : normalizeQaAnswer(extracted),
    normalized_gold: [target].flat().map((gold) => normalizeQaAnswer(String(gold))),
  };
}

export function scoreRlla(testCase: GoldenCase): Outcome {
  const extraInfo = { experiment_name: paramsOf(testCase).string('experiment_name') };
  const { score, columns } = scored(rlla, { ...scorerInput(testCase, 'rlla'), extraInfo }, {});
  return { score, ...columns };
}

function scored(scorer: Scorer, input: ScorerInput, settings: ScorerSettings = {}): Scored {
  return toScored(scorer(input, settings));
}

export function scorerInput(testCase: GoldenCase, dataSource: string): ScorerInput {
  const inputs = inputsOf(testCase);
  return { dataSource, solutionStr: inputs.string('solution_str'), groundTruth: inputs.get('ground_truth') };
}
