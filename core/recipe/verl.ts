/** What a verl user may type that lives elsewhere here, or has nothing to steer here. Data, nothing else. */

/** verl's path (without the wrapper) → ours. */
export const MOVED_KEYS: Readonly<Record<string, string>> = {
  'rollout.response_length': 'data.max_response_length',
  'rollout.prompt_length': 'data.max_prompt_length',
  'trainer.experiment_name': 'name',
  'trainer.default_local_dir': 'store',
  'trainer.v1.trainer_mode': 'rollout.mode',
  'data.micro_batch_size_per_gpu': 'actor.ppo_micro_batch_size_per_gpu',
  'data.max_token_len_per_gpu': 'actor.ppo_max_token_len_per_gpu',
  'data.tokenizer': 'model.tokenizer_path',
  'reward.reward_model.model_path': 'reward.reward_model.path',
  custom_reward_function: 'reward.custom_reward_function',
  reward_model: 'reward.reward_model',
  sandbox_fusion: 'reward.sandbox_fusion',
  optim: 'actor.optim',
};

/** Last names of verl keys that steer FSDP, Megatron, vLLM or Ray. */
export const FOREIGN_NAMES: ReadonlySet<string> = new Set([
  'strategy', 'fsdp_config', 'megatron', 'veomni', 'torchtitan', 'gpu_memory_utilization', 'tensor_model_parallel_size',
  'pipeline_model_parallel_size', 'ulysses_sequence_parallel_size', 'enforce_eager', 'free_cache_engine', 'load_format',
  'enable_chunked_prefill', 'enable_prefix_caching', 'max_num_batched_tokens', 'n_gpus_per_node', 'nnodes', 'device',
  'ray_kwargs', 'ray_init', 'hybrid_engine', 'nccl_timeout', 'use_remove_padding', 'enable_gradient_checkpointing',
  'use_liger', 'use_fused_kernels', 'use_shm', 'trust_remote_code', 'transfer_queue', 'global_profiler', 'profiler',
  'dataloader_num_workers', 'return_raw_chat', 'balance_batch', 'log_prob_micro_batch_size_per_gpu',
  'log_prob_use_dynamic_bsz', 'ppo_micro_batch_size', 'log_prob_micro_batch_size', 'resume_mode', 'resume_from_path',
  'calculate_log_probs', 'use_v1',
]);

/** verl's wrapper of model, actor, rollout and ref. */
export const VERL_WRAPPER = 'actor_rollout_ref';
