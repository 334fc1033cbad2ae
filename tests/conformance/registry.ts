/** All evaluators. One evaluator is one file in `families/` and one line here. */
import { actorTotals } from './families/actor-total.ts';
import { advantages } from './families/advantages.ts';
import { balancing } from './families/balancing.ts';
import { distillation } from './families/distillation.ts';
import { losses } from './families/losses.ts';
import { lrSchedules } from './families/lr-schedules.ts';
import { metrics } from './families/metrics.ts';
import { models } from './families/models.ts';
import { optimEngine } from './families/optim-engine.ts';
import { policyLosses } from './families/policy-loss.ts';
import { recipeAdvantages } from './families/recipe-advantages.ts';
import { recipeLosses } from './families/recipe-losses.ts';
import { rewardShaping } from './families/reward-shaping.ts';
import { rewards } from './families/rewards/index.ts';
import { rolloutCorrection } from './families/rollout-correction.ts';
import { sampling } from './families/sampling.ts';
import { templates } from './families/templates.ts';
import { tokenizers } from './families/tokenizers.ts';
import type { Evaluator } from './types.ts';

export const evaluators: readonly Evaluator[] = [
  models,
  optimEngine,
  lrSchedules,
  sampling,
  tokenizers,
  templates,
  losses,
  actorTotals,
  distillation,
  rolloutCorrection,
  recipeLosses,
  policyLosses,
  advantages,
  rewardShaping,
  recipeAdvantages,
  balancing,
  metrics,
  rewards,
];
