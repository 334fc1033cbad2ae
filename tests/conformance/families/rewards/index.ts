import { pureEvaluator } from '../../evaluators.ts';
import { hasPackages } from '../../../../rewards/host/python-scorers.ts';
import { isPythonScorer } from '../../../../rewards/registry.ts';
import { routeOf } from '../../../../rewards/routing.ts';
import type { Evaluator, GoldenCase, GoldenFile } from '../../types.ts';
import { pythonCases } from './python-scorers.ts';
import { managerDapo, managerGdpo, managerNaive } from './reward-managers.ts';
import { routing } from './routing.ts';
import { scoreGsm8k, scoreMathDapo, scoreMathReward, scoreRlla, scoreSearchQa } from './scorers.ts';

const functions = pureEvaluator('rewards', {
  ...pythonCases,
  gsm8k: scoreGsm8k,
  math_reward: scoreMathReward,
  math_dapo: scoreMathDapo,
  search_r1_qa_em: scoreSearchQa,
  rlla: scoreRlla,
  routing,
  manager_naive: managerNaive,
  manager_dapo: managerDapo,
  manager_gdpo: managerGdpo,
});

export const rewards: Evaluator = { ...functions, missing: missingPackages };

function missingPackages(testCase: GoldenCase, { name }: GoldenFile): string | undefined {
  const routed = routeOf(String(testCase.inputs['data_source']))?.scorer;
  const isScored = testCase.inputs['solution_str'] !== undefined;
  const inPython = Object.hasOwn(pythonCases, name) || (isScored && routed !== undefined && isPythonScorer(routed));
  return inPython && !hasPackages() ? 'needs Python packages: node setup/main.mjs --scorers' : undefined;
}
