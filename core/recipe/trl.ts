/**
 * Keys of TRL's GRPOConfig, RLOOConfig, PPOConfig, SFTConfig, DPOConfig and RewardConfig (and of transformers'
 * TrainingArguments below them), and what they are in petrel. Names that petrel has too are not here. Only data.
 */

export interface TrlKey {
  /** petrel's key; absent when there is none. */
  readonly petrel?: string;
  /** What differs, or why there is no key. */
  readonly note?: string;
}

const key = (petrel: string, note?: string): TrlKey => ({ petrel, ...(note !== undefined && { note }) });
const none = (note: string): TrlKey => ({ note });

const engine = none('petrel’s engine decides');
const dividedModel = 'the number of GPUs, with trainer.engine: torch';
const later = none('not built yet');
const perDevice = 'petrel counts the prompts of all devices, and a TRL batch counts responses';

export const TRL_KEYS: Readonly<Record<string, TrlKey>> = {
  // Model and data.
  model_name_or_path: key('model.path'),
  sft_model_path: key('model.path', 'the reference is the base model'),
  model_init_kwargs: engine,
  model_revision: key('model.revision'),
  tokenizer_name: key('model.tokenizer_path'),
  chat_template_path: key('model.custom_chat_template', 'the template itself, not its path'),
  chat_template_kwargs: key('data.apply_chat_template_kwargs'),
  train_dataset: key('data.train_files'),
  eval_dataset: key('data.val_files'),
  dataset_name: key('data.train_files', 'a file'),
  dataset_text_field: key('data.response_key'),
  max_completion_length: key('data.max_response_length'),
  response_length: key('data.max_response_length'),
  max_new_tokens: key('data.max_response_length'),
  max_seq_length: key('data.max_length'),
  shuffle_dataset: key('data.shuffle'),
  data_seed: key('data.seed'),
  packing: none('sequences are always packed, without effect on the result'),
  padding_free: none('sequences are always packed, without effect on the result'),
  remove_unused_columns: none('rows keep their columns'),
  dataset_num_proc: engine,
  dataloader_num_workers: engine,
  // Sizes.
  per_device_train_batch_size: key('data.train_batch_size', perDevice),
  generation_batch_size: key('data.train_batch_size', 'petrel counts prompts, TRL responses'),
  total_episodes: key('trainer.total_training_steps', 'petrel counts iterations, TRL responses'),
  per_device_eval_batch_size: none('a validation samples rollout.max_num_seqs at a time'),
  local_rollout_forward_batch_size: key('actor.ppo_max_token_len_per_gpu', 'in tokens'),
  mini_batch_size: key('actor.ppo_mini_batch_size', 'petrel counts prompts'),
  num_mini_batches: key('actor.ppo_mini_batch_size', 'the prompts of one mini-batch, not the number of mini-batches'),
  steps_per_generation: key('actor.ppo_mini_batch_size', 'the prompts of one optimiser step, not the number of steps'),
  gradient_accumulation_steps: key('actor.ppo_mini_batch_size', 'petrel accumulates within a mini-batch by itself'),
  num_generations: key('rollout.n'),
  num_generations_eval: key('rollout.val_kwargs.n'),
  rloo_k: key('rollout.n'),
  num_iterations: key('actor.ppo_epochs'),
  num_ppo_epochs: key('actor.ppo_epochs'),
  ppo_epochs: key('actor.ppo_epochs'),
  num_train_epochs: key('trainer.total_epochs'),
  max_steps: key('trainer.total_training_steps', 'petrel counts iterations, TRL optimiser steps'),
  // Sampling.
  stop_token: key('rollout.stop'),
  generation_kwargs: key('rollout.temperature', 'and the other keys of rollout'),
  use_vllm: key('rollout.name', 'native, hf or vllm'),
  vllm_tensor_parallel_size: key('rollout.tensor_model_parallel_size', 'with rollout.name: vllm'),
  vllm_server_base_url: key('rollout.url', 'with rollout.name: vllm'),
  cache_implementation: engine,
  use_transformers_paged: engine,
  ds3_gather_for_generation: engine,
  // The algorithm.
  beta: key('actor.kl_loss_coef', 'with actor.use_kl_loss: true; for DPO algorithm.dpo_beta'),
  kl_coef: key('algorithm.kl_ctrl.kl_coef', 'with algorithm.use_kl_in_reward: true'),
  kl_estimator: key('algorithm.kl_penalty'),
  epsilon: key('actor.clip_ratio'),
  epsilon_high: key('actor.clip_ratio_high'),
  delta: key('actor.clip_ratio_c'),
  cliprange: key('actor.clip_ratio'),
  vf_coef: key('critic.optim.lr', 'the critic has an optimiser of its own'),
  scale_rewards: key('algorithm.norm_adv_by_std_in_grpo', 'true for group, false for none'),
  normalize_advantages: key('algorithm.adv_estimator', 'reinforce_plus_plus_baseline normalises over the batch'),
  whiten_rewards: later,
  reward_clip_range: later,
  missing_eos_penalty: later,
  mask_truncated_completions: later,
  sync_ref_model: later,
  ref_model_mixup_alpha: later,
  ref_model_sync_steps: later,
  top_entropy_quantile: later,
  loss_type: key(
    'actor.loss_agg_mode',
    'bnpo and dapo: token-mean; grpo: seq-mean-token-mean; dr_grpo: seq-mean-token-sum-norm; cispo and sapo are names of actor.policy_loss.loss_mode; for DPO algorithm.dpo_loss_type (sigmoid or ipo)',
  ),
  importance_sampling_level: key('actor.policy_loss.loss_mode', 'sequence: gspo'),
  reward_funcs: key('reward.custom_reward_function.path'),
  reward_weights: key(
    'algorithm.gdpo_reward_weights',
    'with algorithm.adv_estimator: gdpo and one scorer that returns all rewards',
  ),
  reward_model_path: key('reward.reward_model.path'),
  value_model_path: key('critic.enable', 'the critic begins as the policy’s model with a value head'),
  vllm_importance_sampling_correction: key('algorithm.rollout_correction.rollout_is'),
  disable_dropout: none('petrel’s models have no dropout'),
  // DPO and reward models.
  label_smoothing: key('algorithm.dpo_label_smoothing'),
  precompute_ref_log_probs: none('a batch is always made with the log-probs of the reference'),
  ref_model_init_kwargs: engine,
  reference_free: later,
  rpo_alpha: later,
  ld_alpha: later,
  use_weighting: later,
  center_rewards_coefficient: later,
  // The optimiser.
  learning_rate: key('actor.optim.lr'),
  warmup_steps: key('actor.optim.lr_warmup_steps'),
  warmup_ratio: key('actor.optim.lr_warmup_steps_ratio'),
  adam_beta1: key('actor.optim.betas', 'the first of two numbers'),
  adam_beta2: key('actor.optim.betas', 'the second of two numbers'),
  adam_epsilon: key('actor.optim.eps'),
  max_grad_norm: key('actor.grad_clip'),
  optim: key('actor.optim', 'petrel has AdamW only'),
  // The run.
  run_name: key('name'),
  output_dir: key('store'),
  save_steps: key('trainer.save_freq'),
  save_total_limit: key('trainer.max_actor_ckpt_to_keep'),
  eval_steps: key('trainer.test_freq'),
  eval_strategy: key('trainer.test_freq'),
  eval_on_start: key('trainer.val_before_train'),
  metric_for_best_model: key('trainer.best_metric'),
  greater_is_better: key('trainer.best_metric_mode'),
  load_best_model_at_end: key('trainer.best_metric'),
  report_to: key('trainer.logger'),
  logging_steps: none('every iteration has its metrics'),
  log_completions: none('petrel samples shows them'),
  num_completions_to_print: none('petrel samples shows them'),
  resume_from_checkpoint: none('petrel resume <run>'),
  push_to_hub: none('petrel ckpt export writes a folder'),
  full_determinism: key('deterministic'),
  // Arithmetic and memory.
  bf16: key('model.compute_dtype'),
  fp16: key('model.compute_dtype', 'fp32 or bf16'),
  torch_dtype: key('model.compute_dtype'),
  router_aux_loss_coef: key('actor.router_aux_loss_coef'),
  use_peft: key('model.lora_rank'),
  lora_r: key('model.lora_rank'),
  lora_target_modules: key('model.target_modules'),
  gradient_checkpointing: engine,
  torch_compile: engine,
  use_liger_kernel: engine,
  use_liger_loss: engine,
  activation_offloading: engine,
  deepspeed: key('trainer.fsdp_size', dividedModel),
  fsdp: key('trainer.fsdp_size', dividedModel),
  ddp_timeout: engine,
};

/** Keys that begin so configure TRL's vLLM server. */
const VLLM = /^vllm_/;

/** What a key of TRL is in petrel; undefined when TRL has no such key. */
export function trlKey(name: string): TrlKey | undefined {
  if (Object.hasOwn(TRL_KEYS, name)) return TRL_KEYS[name];
  return VLLM.test(name) ? none('petrel sets up vLLM by itself') : undefined;
}
