/** The rewards of a batch: the scores of its samples on tokens, less the KL penalty where the recipe asks for it. */
import type { Counters } from '../../../core/records/schema.ts';
import { outcomeScores, rewardsAtLastToken } from '../../../core/rl/advantages/outcomes.ts';
import { nextKlCoef } from '../../../core/rl/kl-controllers.ts';
import { klInReward } from '../../../core/rl/kl-in-reward.ts';
import type { Numbers } from '../../../core/rl/ragged.ts';
import type { AdvantageInput, KlInRewardSettings } from '../../../core/wire/jobs/index.ts';
import type { Layout } from './batch-outputs.ts';
import { managedScores } from '../samples/managed-scores.ts';
import type { ManagedScores } from '../samples/managed-scores.ts';
import { rowsOf } from '../samples/rows.ts';
import type { Sample } from '../samples/samples.ts';

export interface BatchRewards {
  /** Scores after the reward manager. */
  readonly scores_S: Float32Array;
  /** Scores by name, where the estimator reads them. */
  readonly components?: ManagedScores['components'];
  /** Reward of each token; the reward of a sample is their sum. */
  readonly rewards_T: Numbers;
  readonly rewards_S: Numbers;
  /** State of controllers after this batch, of those that it changes. */
  readonly controllers: Counters['controllers'];
  readonly metrics: Readonly<Record<string, number>>;
}

/** `layout`: with old and reference log-probs where there is a KL penalty. */
export function rewardsOf(
  { algorithm, before }: Pick<AdvantageInput, 'algorithm' | 'before'>,
  samples: readonly Sample[],
  layout: Layout,
): BatchRewards {
  const managed = managedScores(algorithm, samples);
  const { scores_S } = managed;
  const rows = rowsOf(layout);
  const rewards_T = rewardsAtLastToken(scores_S, rows);
  const plain = { ...managed, rewards_T, rewards_S: scores_S, controllers: {} };
  const { klInReward: kl } = algorithm;
  if (kl === undefined || samples.length === 0) return plain;
  const { oldLogProbs_T: oldLogProb_T, refLogProbs_T: refLogProb_T } = layout;
  if (oldLogProb_T === undefined || refLogProb_T === undefined)
    throw new RangeError('a batch with a KL penalty has old and reference log-probs');
  const coefficient = coefficientOf(kl, before);
  const penalised = klInReward({ rows, scores_T: rewards_T, oldLogProb_T, refLogProb_T }, kl.penalty, coefficient);
  return {
    ...managed,
    rewards_T: penalised.rewards_T,
    rewards_S: outcomeScores(penalised.rewards_T, rows),
    controllers: { klCoef: coefficientAfter(kl, coefficient, penalised.kl, samples.length) },
    metrics: { ...managed.metrics, ...penalised.metrics },
  };
}

/** `klCoef` is 0 until the first batch, also in records of runs that had no penalty. */
function coefficientOf({ control }: KlInRewardSettings, { controllers }: Counters): number {
  const { klCoef } = controllers;
  if (control.type === 'fixed' || typeof klCoef !== 'number' || klCoef === 0) return control.klCoef;
  return klCoef;
}

/**
 * A KL that is not finite says nothing: the update of such a batch is skipped, and the next one uses the same
 * coefficient.
 */
function coefficientAfter({ control }: KlInRewardSettings, coefficient: number, kl: number, samples: number): number {
  return Number.isFinite(kl) ? nextKlCoef(control, coefficient, kl, samples) : coefficient;
}
