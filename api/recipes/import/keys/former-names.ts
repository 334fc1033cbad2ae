/**
 * Names that verl's keys had at other dates, read from the tags of its repository (v0.1 of 2024-12 to v0.7.0 of
 * 2026-01) and from the layout after it. Only data. Keys stand without the wrapper `actor_rollout_ref.`; patterns are
 * those of rules.ts. The first row that matches decides.
 */
export interface FormerName {
  readonly former: string;
  readonly now: string;
  /** The first date of the name; absent where it is as old as verl. */
  readonly since?: string;
  /** The last release that knows the name. */
  readonly until: string;
}

const release = { v03: '0.3 (2025-04)', v04: '0.4 (2025-06)', v06: '0.6 (2025-10)', v07: '0.7 (2026-01)' } as const;
const { v03, v04, v06, v07 } = release;

export const FORMER_NAMES: readonly FormerName[] = [
  // Rewards: `reward_model.…` and keys at the top became `reward.…` after 0.7.
  { former: 'reward_model.overlong_buffer.**', now: 'reward.overlong_buffer.**', since: '2025-04', until: v07 },
  { former: 'reward_model.reward_manager', now: 'reward.reward_manager.name', since: '2025-02', until: v07 },
  { former: 'reward_manager.**', now: 'reward.reward_manager.**', since: '2026-01', until: v07 },
  { former: 'reward_model.reward_kwargs.**', now: 'reward.reward_kwargs.**', since: '2025-05', until: v07 },
  { former: 'reward_model.sandbox_fusion.**', now: 'reward.sandbox_fusion.**', since: '2025-05', until: v07 },
  { former: 'reward_model.(prime_granularity|prime_norm|prime_use_gt|lambda)', now: 'reward.prime.$1', until: v07 },
  { former: 'reward_model.model.(update|loss_type|beta_train)', now: 'reward.prime.$1', until: v07 },
  { former: 'reward_model.model.optim.grad_clip', now: 'reward.prime.grad_clip', until: v07 },
  { former: 'reward_model.model.optim.warmup_style', now: 'reward.prime.optim.lr_scheduler_type', until: v07 },
  { former: 'reward_model.model.optim.**', now: 'reward.prime.optim.**', until: v07 },
  { former: 'reward_model.(num_workers|launch_reward_fn_async|use_reward_loop)', now: 'reward.$1', until: v07 },
  {
    former: 'reward_model.(max_concurrent|max_rpm|max_tpm|estimated_tokens_per_request|timeout)',
    now: 'reward.$1',
    until: v07,
  },
  { former: 'reward_model.enable_resource_pool', now: 'reward.reward_model.enable_resource_pool', until: v07 },
  { former: 'reward_model.**', now: 'reward.reward_model.**', until: v07 },
  {
    former: 'custom_reward_function.overlong_buffer.**',
    now: 'reward.overlong_buffer.**',
    since: '2025-03',
    until: v03,
  },
  { former: 'custom_reward_function.**', now: 'reward.custom_reward_function.**', since: '2025-03', until: v07 },
  { former: 'sandbox_fusion.**', now: 'reward.sandbox_fusion.**', until: v07 },

  // Losses: keys of recipes, before `policy_loss` had them.
  {
    former: 'actor.(loss_mode|clip_cov_ratio|clip_cov_lb|clip_cov_ub|kl_cov_ratio|ppo_kl_coef)',
    now: 'actor.policy_loss.$1',
    since: '2025-06',
    until: v07,
  },
  { former: '(actor|algorithm).sppo_eta', now: 'actor.policy_loss.sppo_eta', since: '2025-05', until: v07 },
  { former: 'actor.dpo_beta', now: 'actor.policy_loss.dpo_beta', since: '2025-05', until: v07 },
  {
    former: 'algorithm.(rollout_is_threshold|rollout_is_batch_normalize|rollout_rs|rollout_rs_threshold)',
    now: 'algorithm.rollout_correction.$1',
    since: '2025-10',
    until: v06,
  },
  { former: 'critic.kl_ctrl.(type|kl_coef|horizon|target_kl)', now: 'algorithm.kl_ctrl.$1', until: v04 },

  // The trainer and its data.
  { former: '(actor|critic).optim.warmup_style', now: '$1.optim.lr_scheduler_type', until: v07 },
  { former: 'actor.micro_batch_size', now: 'actor.ppo_micro_batch_size', until: v07 },
  { former: 'data.data_source_key', now: 'data.reward_fn_key', until: v07 },
  { former: 'trainer.val_generations_to_log_to_wandb', now: 'trainer.log_val_generations', until: v03 },
  { former: 'trainer.max_ckpt_to_keep', now: 'trainer.max_actor_ckpt_to_keep', since: '2025-06', until: v07 },
  { former: 'trainer.resume_path', now: 'trainer.resume_from_path', until: v04 },
];

/** Names of the trainer of supervised runs, whose sections stand at the top. */
export const SUPERVISED_NAMES: readonly FormerName[] = [
  { former: 'optim.warmup_steps_ratio', now: 'actor.optim.lr_warmup_steps_ratio', until: v06 },
  { former: 'optim.lr_scheduler', now: 'actor.optim.lr_scheduler_type', since: '2025-06', until: v07 },
  { former: 'optim.**', now: 'actor.optim.**', until: v07 },
  { former: 'model.partial_pretrain', now: 'model.path', until: v07 },
  { former: 'model.(fsdp_config.**|strategy)', now: 'actor.$1', until: v07 },
  { former: 'engine.**', now: 'actor.fsdp_config.**', since: '2025-10', until: v07 },
  { former: 'data.(micro_batch_size_per_gpu|micro_batch_size)', now: 'actor.ppo_$1', until: v07 },
  { former: 'data.max_token_len_per_gpu', now: 'actor.ppo_max_token_len_per_gpu', since: '2025-10', until: v07 },
  { former: 'data.use_dynamic_bsz', now: 'actor.use_dynamic_bsz', since: '2025-10', until: v07 },
  { former: 'checkpoint.**', now: 'actor.checkpoint.**', since: '2025-10', until: v07 },
  { former: 'profiler.**', now: 'actor.profiler.**', since: '2025-10', until: v07 },
];
