import { pureEvaluator } from '../../evaluators.ts';
import type { Evaluator } from '../../types.ts';
import { managerDapo, managerGdpo, managerNaive } from './managers.ts';
import { routing } from './routing.ts';
import { scoreGsm8k, scoreMathDapo, scoreMathReward, scoreRlla, scoreSearchQa } from './scorers.ts';

const pure = pureEvaluator('rewards', {
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

export const rewards: Evaluator = pure;
