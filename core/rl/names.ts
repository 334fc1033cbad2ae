/**
 * Recipe names for the arithmetic of this folder. The registries that implement them are typed by these lists, so that
 * none can lack an entry. A recipe is read without loading the arithmetic.
 */
import { isModulePath } from '../module-path.ts';
import type { ModulePath } from '../module-path.ts';

/** Key `actor.loss_agg_mode`; aggregate.ts. */
export const LOSS_AGG_MODES = [
  'token-mean',
  'token-sum',
  'seq-mean-token-sum',
  'seq-mean-token-sum-norm',
  'seq-mean-token-mean',
] as const;
export type LossAggMode = (typeof LOSS_AGG_MODES)[number];

const KL_ESTIMATORS = ['kl', 'k1', 'abs', 'mse', 'k2', 'low_var_kl', 'k3'] as const;
export type KlEstimator = (typeof KL_ESTIMATORS)[number];
export type KlType = KlEstimator | `${KlEstimator}+`;
/** Key `distillation.distillation_loss.loss_mode`: what of the teacher is compared; distillation/. */
export const DISTILLATION_LOSSES = [...KL_ESTIMATORS, 'forward_kl_topk'] as const;
/** Keys `actor.kl_loss_type` and `algorithm.kl_penalty`, the "+" forms included; kl.ts. */
export const KL_TYPES: readonly KlType[] = [...KL_ESTIMATORS, ...KL_ESTIMATORS.map((name) => `${name}+` as const)];

/** What a policy loss reads besides log-probs, old log-probs, advantages and the mask; policy-loss/types.ts. */
export type LossNeed = 'groups' | 'scores' | 'rolloutLogProbs' | 'refLogProbs' | 'logZ' | 'seed';

/**
 * Key `actor.policy_loss.loss_mode`: every policy loss with its needs; policy-loss/. The last four are those of verl's
 * recipes.
 */
export const LOSS_NEEDS = {
  vanilla: [],
  gspo: [],
  sapo: [],
  cispo: [],
  gpg: [],
  geo_mean: [],
  clip_cov: ['seed'],
  kl_cov: [],
  dppo_tv: [],
  dppo_kl: [],
  dro: [],
  bypass_mode: ['rolloutLogProbs'],
  sppo: [],
  gvpo: ['groups'],
  flowrl: ['refLogProbs', 'logZ'],
  online_dpo: ['groups', 'scores', 'refLogProbs'],
} as const satisfies Readonly<Record<string, readonly LossNeed[]>>;
export type PolicyLossName = keyof typeof LOSS_NEEDS;
export const POLICY_LOSS_NAMES = Object.keys(LOSS_NEEDS) as [PolicyLossName, ...PolicyLossName[]];
/** A module of the user's own tells its needs when it is loaded. */
export const needsOfLoss = (name: PolicyLossName | ModulePath): readonly LossNeed[] =>
  isModulePath(name) ? [] : LOSS_NEEDS[name];

/** What a policy loss of the user's own may need; own/types.ts. */
export const OWN_LOSS_NEEDS = ['rolloutLogProbs', 'refLogProbs', 'entropy', 'values', 'seed'] as const;
export type OwnLossNeed = (typeof OWN_LOSS_NEEDS)[number];

/** Losses over pairs of responses; preference-loss.ts. */
export const PREFERENCE_LOSS_TYPES = ['sigmoid', 'ipo'] as const;
export type PreferenceLossType = (typeof PREFERENCE_LOSS_TYPES)[number];

/** Losses of PRIME's implicit reward model (verl-recipe: `loss_type`, where `none` is called `dpo`); prime/. */
export const PRIME_LOSSES = ['ce', 'none', 'bon_rm', 'bon_acc'] as const;
export type PrimeLossName = (typeof PRIME_LOSSES)[number];

/** What an advantage estimator reads besides token rewards and prompt groups; advantages/inputs.ts. */
export type AdvantageNeed =
  /** Values of a critic. */
  | 'values'
  /** Log-probs of the policy before the update. */
  | 'oldLogProbs'
  /** Σ π² over the vocabulary at each token. */
  | 'sumPiSquared'
  /** The score of a greedy response to each prompt. */
  | 'greedyBaselines'
  /** Several scores per sample, by name. */
  | 'components'
  /** A reward per token from a reward model. */
  | 'processRewards'
  /** An estimate of each prompt's expected score, kept from earlier iterations. */
  | 'promptValues'
  /** Samples that are steps of agent episodes. */
  | 'episodes'
  /**
   * Two or more responses to a prompt (key `rollout.n`), because they are compared. A group that lost members is no
   * error, but in `grpo_passk` and `prime`.
   */
  | 'groupsOfTwo';

/** Key `algorithm.adv_estimator`: every estimator with its needs; advantages/. */
export const ADVANTAGE_NEEDS = {
  gae: ['values'],
  grpo: ['groupsOfTwo'],
  grpo_vectorized: ['groupsOfTwo'],
  grpo_passk: ['groupsOfTwo'],
  gdpo: ['groupsOfTwo', 'components'],
  rloo: ['groupsOfTwo'],
  rloo_vectorized: ['groupsOfTwo'],
  opo: ['groupsOfTwo'],
  gpg: ['groupsOfTwo'],
  reinforce_plus_plus: [],
  reinforce_plus_plus_baseline: ['groupsOfTwo'],
  remax: ['greedyBaselines'],
  optimal_token_baseline: ['groupsOfTwo', 'oldLogProbs', 'sumPiSquared'],
  tir_optimal_token_baseline: ['groupsOfTwo', 'oldLogProbs', 'sumPiSquared'],
  vapo: ['values'],
  prime: ['groupsOfTwo', 'processRewards'],
  spo: ['promptValues'],
  sppo: [],
  gigpo: ['groupsOfTwo', 'episodes'],
} as const satisfies Readonly<Record<string, readonly AdvantageNeed[]>>;
export type AdvantageName = keyof typeof ADVANTAGE_NEEDS;
export const ADVANTAGE_NAMES = Object.keys(ADVANTAGE_NEEDS) as [AdvantageName, ...AdvantageName[]];
/** A module of the user's own tells its needs when it is loaded. */
export const needsOfEstimator = (name: AdvantageName | ModulePath): readonly AdvantageNeed[] =>
  isModulePath(name) ? [] : ADVANTAGE_NEEDS[name];

/** What an advantage estimator of the user's own may need; own/types.ts. */
export const OWN_ESTIMATOR_NEEDS = ['groupsOfTwo', 'values'] as const;
export type OwnEstimatorNeed = (typeof OWN_ESTIMATOR_NEEDS)[number];

/** Key `algorithm.kl_ctrl.type`; kl-controllers.ts. */
export const KL_CONTROLLER_NAMES = ['fixed', 'adaptive'] as const;
export type KlControllerName = (typeof KL_CONTROLLER_NAMES)[number];

/** Key `algorithm.pf_ppo.reweight_method`; pf-ppo.ts. */
export const PF_PPO_METHODS = ['pow', 'max_min', 'max_random'] as const;
export type PfPpoMethod = (typeof PF_PPO_METHODS)[number];

/** Key `algorithm.spo.rho.type`; spo-tracker.ts. */
export const SPO_RHOS = ['kl', 'constant'] as const;
export type SpoRho = (typeof SPO_RHOS)[number];

/** Keys `algorithm.gigpo.mode` and `algorithm.gigpo.episode_stats`; advantages/gigpo.ts. */
export const GIGPO_MODES = ['mean_norm', 'mean_std_norm'] as const;
export type GigpoMode = (typeof GIGPO_MODES)[number];
export const GIGPO_EPISODE_STATS = ['per_trajectory', 'per_step_row'] as const;
export type GigpoEpisodeStats = (typeof GIGPO_EPISODE_STATS)[number];
