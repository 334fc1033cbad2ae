/**
 * Recipe names for the arithmetic of this folder. The registries that implement them are typed by these lists, so that
 * none can lack an entry. A recipe is read without loading the arithmetic.
 */

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
/** Keys `actor.kl_loss_type` and `algorithm.kl_penalty`, the "+" forms included; kl.ts. */
export const KL_TYPES: readonly KlType[] = [...KL_ESTIMATORS, ...KL_ESTIMATORS.map((name) => `${name}+` as const)];

/** Key `actor.policy_loss.loss_mode`; policy-loss/. */
export const POLICY_LOSS_NAMES = ['vanilla', 'gspo', 'sapo', 'cispo', 'geo_mean'] as const;
export type PolicyLossName = (typeof POLICY_LOSS_NAMES)[number];

/** Key `algorithm.kl_ctrl.type`; kl-controllers.ts. */
export const KL_CONTROLLER_NAMES = ['fixed', 'adaptive'] as const;
export type KlControllerName = (typeof KL_CONTROLLER_NAMES)[number];

/** Key `algorithm.pf_ppo.reweight_method`; pf-ppo.ts. */
export const PF_PPO_METHODS = ['pow', 'max_min', 'max_random'] as const;
export type PfPpoMethod = (typeof PF_PPO_METHODS)[number];
