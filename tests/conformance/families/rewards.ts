import { extractGsm8k, gsm8k, type Gsm8kMethod } from '../../../rewards/gsm8k.ts';
import { toScored } from '../../../rewards/result.ts';
import { pureEvaluator } from '../evaluators.ts';
import { inputsOf, paramsOf } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const rewards = pureEvaluator('rewards', { gsm8k: scoreGsm8k });

function scoreGsm8k(testCase: GoldenCase): Outcome {
  const [inputs, settings] = [inputsOf(testCase), testCase.params ?? {}];
  const solutionStr = inputs.string('solution_str');
  const extracted = extractGsm8k(solutionStr, paramsOf(testCase).string('method') as Gsm8kMethod);
  const row = { dataSource: 'openai/gsm8k', solutionStr, groundTruth: inputs.get('ground_truth') };
  return { extracted: extracted ?? null, score: toScored(gsm8k(row, settings)).score };
}
