/**
 * The programs of verl that train, with what their own configuration or code sets. A script of
 * `recipe.prime.main_prime` says nowhere that it is PRIME. Read from the tags v0.3 to v0.7.0 of verl's repository. Only
 * data.
 */
export interface TrainingModule {
  /** The module's name, or the end of it. */
  readonly name: string;
  /** Name of the configuration beside the module, which Hydra reads first. */
  readonly config: string;
  /** Values of that configuration that differ from verl's defaults: the script may change them. */
  readonly sets?: Readonly<Record<string, unknown>>;
  /** What the module's code does, whatever the script says. */
  readonly method?: Readonly<Record<string, unknown>>;
  /** What the module does that an imported recipe does not. */
  readonly lost?: string;
}

const asynchronous = 'it samples with older weights while it trains; petrel samples every batch with the newest ones';
const dapo = { 'reward_model.reward_manager': 'dapo' } as const;
const warmup = { 'actor_rollout_ref.actor.optim.lr_warmup_steps': 15 } as const;

const TRAINING_MODULES: readonly TrainingModule[] = [
  { name: 'verl.trainer.main_ppo', config: 'ppo_trainer' },
  { name: 'verl.trainer.main_ppo_v0', config: 'ppo_trainer' },
  { name: 'verl.trainer.main_ppo_sync', config: 'ppo_trainer' },
  { name: 'transfer_queue.main_ppo', config: 'ppo_trainer' },
  { name: 'fsdp_sft_trainer', config: 'sft_trainer' },
  { name: 'sft_trainer', config: 'sft_trainer_engine' },
  { name: 'sft_trainer_ray', config: 'sft_trainer_engine' },
  { name: 'main_dapo', config: 'dapo_trainer', sets: dapo },
  { name: 'main_entropy', config: 'entropy_trainer', sets: dapo },
  {
    name: 'main_flowrl',
    config: 'flowrl_trainer',
    sets: dapo,
    method: { 'actor_rollout_ref.actor.policy_loss.loss_mode': 'flowrl' },
  },
  {
    name: 'main_prime',
    config: 'prime_trainer',
    sets: {
      'data.filter_accuracy': true,
      'data.oversample_factor': 4,
      'data.filter_truncate': true,
      'data.truncation': 'right',
      'actor_rollout_ref.rollout.n': 4,
      'actor_rollout_ref.actor.entropy_coeff': 0.001,
      'reward_model.reward_manager': 'prime',
    },
    method: { 'algorithm.adv_estimator': 'prime' },
  },
  {
    name: 'main_sppo',
    config: 'sppo_trainer',
    sets: warmup,
    method: { 'algorithm.adv_estimator': 'sppo', 'actor_rollout_ref.actor.policy_loss.loss_mode': 'sppo' },
  },
  {
    name: 'main_spin',
    config: 'spin_trainer',
    sets: { ...warmup, 'trainer.ref_update_freq': 1 },
    method: { 'algorithm.adv_estimator': 'grpo', 'actor_rollout_ref.actor.policy_loss.loss_mode': 'online_dpo' },
  },
  { name: 'fully_async_main', config: 'fully_async_ppo_trainer', lost: asynchronous },
  { name: 'one_step_off_policy.main_ppo', config: 'one_step_off_ppo_trainer', lost: asynchronous },
];

/** Finds the row of a module (`recipe.dapo.main_dapo`, `verl/trainer/main_ppo.py`); undefined for one that has none. */
export function trainingModule(module: string): TrainingModule | undefined {
  const dotted = `.${module.replace(/\.py$/, '').replaceAll('/', '.')}`;
  return TRAINING_MODULES.find(({ name }) => dotted.endsWith(`.${name}`));
}

/** Configurations of verl's own trainers; their values are verl's defaults. */
const OWN_CONFIGS: ReadonlySet<string> = new Set(TRAINING_MODULES.map(({ config }) => config));

/** Is this a configuration of verl, so that its values are known without its file? */
export const isOwnConfig = (name: string): boolean =>
  OWN_CONFIGS.has(name.replace(/\.ya?ml$/, '').replace('_megatron', ''));

/** Does this configuration hold verl's defaults, and nothing of a method? */
export const holdsDefaults = (name: string): boolean =>
  /^(?:ppo_trainer|ppo_megatron_trainer|sft_trainer|sft_trainer_engine)(?:\.ya?ml)?$/.test(name);
