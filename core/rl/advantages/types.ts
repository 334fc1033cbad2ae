import type { AdvantageNeed, GigpoEpisodeStats, GigpoMode } from '../names.ts';
import type { Numbers, RaggedRows } from '../ragged.ts';

/** A whole training batch: estimators never see mini-batches. */
export interface AdvantageBatch {
  readonly rows: RaggedRows;
  /**
   * Reward of each token (verl: `token_level_rewards`). The outcome score of a sample is the sum over its whole row,
   * masked tokens included; `rewardsAtLastToken` makes these rewards from scores.
   */
  readonly rewards_T: Numbers;
  /** Key of the prompt of each sample; samples with equal keys form a group. */
  readonly groups_S: ArrayLike<unknown>;
  /** Need `values`. */
  readonly values_T?: Numbers | undefined;
  /** Need `oldLogProbs`. */
  readonly oldLogProb_T?: Numbers | undefined;
  /** Need `sumPiSquared`. */
  readonly sumPiSquared_T?: Numbers | undefined;
  /** Importance weights of trainer against sampler, for the optimal token baselines if there are any. */
  readonly rolloutIsWeights_T?: Numbers | undefined;
  /** Need `greedyBaselines`: the score of a greedy response to the same prompt (verl: `reward_baselines`). */
  readonly greedyBaselines_S?: Numbers | undefined;
  /** Need `components`: scores by name, as the scorer gave them. */
  readonly components?: Readonly<Record<string, Numbers>> | undefined;
  /** Need `processRewards` (verl: `rm_scores` of PRIME). */
  readonly processRewards_T?: Numbers | undefined;
  /** Need `promptValues`. */
  readonly promptValues_S?: Numbers | undefined;
  /** Need `episodes`. */
  readonly episodes?: EpisodeSteps | undefined;
  /**
   * Present if agent sessions gave several samples each. Only `grpo` reads it; for the others samples are independent.
   */
  readonly sessions?: SessionOutputs | undefined;
}

/** Samples that are steps of episodes: a row is one action of an agent, and its rewards are the environment's. */
export interface EpisodeSteps {
  /** Key of the episode within its group. */
  readonly episodes_S: ArrayLike<unknown>;
  /** Orders the steps of an episode. */
  readonly steps_S: Numbers;
  /** What the agent observed before the step; steps of a group with equal anchors are compared. */
  readonly anchors_S: ArrayLike<unknown>;
}

/** Samples that are outputs of agent sessions. */
export interface SessionOutputs {
  /** Key of the session of each sample, unique in the batch. */
  readonly sessions_S: ArrayLike<unknown>;
  /** Orders the outputs of a session; only the highest one has the outcome. */
  readonly outputs_S: Numbers;
}

/** verl's keys under `algorithm`; each comment begins with the default. */
export interface AdvantageConfig {
  /** 1; discount per token, for `gigpo` per step of an episode. */
  readonly gamma?: number | undefined;
  /** 1; the λ of `gae`. */
  readonly lam?: number | undefined;
  /** true; false is Dr.GRPO. Read by `grpo`, `grpo_vectorized`, `grpo_passk` and `gdpo`. */
  readonly normAdvByStdInGrpo?: boolean | undefined;
  /** No default: the components that `gdpo` adds up. */
  readonly gdpoRewardKeys?: readonly string[] | undefined;
  /** 1 each; weights of these components. */
  readonly gdpoRewardWeights?: readonly number[] | undefined;
  /** 1; divisor of `gpg`. */
  readonly fNorm?: number | undefined;
  /** true; the optimal token baselines are 0 where only the longest response of a group is left. */
  readonly handleZeroTail?: boolean | undefined;
  /** 5; weight of the process rewards of `prime`. */
  readonly rewardDpoCoef?: number | undefined;
  /** 5; weight of the outcome scores of `prime`. */
  readonly rewardGtCoef?: number | undefined;
  readonly gigpo?: GigpoConfig | undefined;
  readonly vapo?: VapoConfig | undefined;
  /** Added to divisors: 1e-6 to standard deviations of groups, 1e-8 to the weights of the optimal token baselines. */
  readonly epsilon?: number | undefined;
}

export interface GigpoConfig {
  /** 1; weight of the advantage of the step beside that of the episode. */
  readonly stepAdvantageW?: number | undefined;
  /** mean_norm subtracts the mean of the group; mean_std_norm also divides by its standard deviation. */
  readonly mode?: GigpoMode | undefined;
  /** per_trajectory counts an episode once in the mean of its group; per_step_row as often as it has steps. */
  readonly episodeStats?: GigpoEpisodeStats | undefined;
}

export interface VapoConfig {
  /** 0.05; the policy's λ is 1 − 1 / (alpha · length). */
  readonly alpha?: number | undefined;
  /** 1; the λ of the critic's targets. */
  readonly lamCritic?: number | undefined;
}

export interface Advantages {
  /**
   * Whether positions with mask 0 are 0 differs by estimator, as in verl. Training reads positions with mask 1 only.
   */
  readonly advantages_T: Float64Array;
  /** Targets of a critic; for estimators of outcomes the advantages themselves. */
  readonly returns_T: Float64Array;
}

export interface AdvantageEstimator {
  /** verl's name, key `algorithm.adv_estimator`. */
  readonly name: string;
  readonly needs: readonly AdvantageNeed[];
  /** @throws InvalidInputError that names a missing input, or one of the wrong length. */
  compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages;
}
