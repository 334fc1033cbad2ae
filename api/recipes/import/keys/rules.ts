/**
 * verl's keys that are not simply petrel's keys of the same name: one table, read from the top. Keys stand without the
 * wrapper `actor_rollout_ref.`. A key that is not here and is a key of petrel keeps its value.
 *
 * In a pattern `*` is one name, `**` any rest, and `(a|b)` a choice.
 */
import type { ConversionName } from './conversions.ts';
import type { Reason } from './reasons.ts';

export interface Rule {
  readonly verl: string;
  /** petrel's key. With `how` its meaning differs. */
  readonly to?: string;
  /** How the meaning differs. Without `to`: petrel has no key, but does the same in this way. */
  readonly how?: string;
  /** false: the counterpart is named, but nothing is written. */
  readonly write?: false;
  readonly convert?: ConversionName;
  /** Other keys of petrel that are written where `to` is. */
  readonly also?: Readonly<Record<string, unknown>>;
  /** Values for which nothing needs to be set, because petrel does so. */
  readonly met?: readonly unknown[];
  /** The reason for all other values. */
  readonly none?: Reason;
}

const off = [false, null, 'disabled', 'none'];
const one = [1, null];
const anyRole = '(actor|ref|critic|rollout)';

const packed = 'sequences are always packed without padding; the result is the same up to rounding';
const logProbs = 'log-probs are computed in forward passes of actor.ppo_max_token_len_per_gpu tokens';
const ownEngine = 'native is kept; petrel recipe import --engine torch writes torch and vLLM';
const inHostMemory = 'the native engine computes in host memory, where everything is';
const inFp32 =
  'weights, moments and sums of gradients are kept in fp32; trainer.state_dtype=bf16 keeps the state in bf16, with each step rounded stochastically';
const allRewards = 'the reward of one sample is computed from its text; only the naive manager';
const perRun = 'the limit holds for the whole run; verl’s for each of its processes';

export const RULES: readonly Rule[] = [
  // Names and places.
  { verl: 'trainer.experiment_name', to: 'name', convert: 'runName' },
  { verl: 'trainer.default_local_dir', to: 'store', how: 'the store holds everything of a run, not only checkpoints' },
  { verl: 'trainer.logger', to: 'trainer.logger', convert: 'loggers' },
  { verl: 'rollout.response_length', to: 'data.max_response_length', convert: 'unlessReference' },
  { verl: 'rollout.prompt_length', to: 'data.max_prompt_length', convert: 'unlessReference' },
  { verl: 'reward.reward_model.model_path', to: 'reward.reward_model.path' },
  { verl: 'reward.reward_model.model.path', to: 'reward.reward_model.path' },
  { verl: 'reward.custom_reward_function.path', to: 'reward.custom_reward_function.path' },
  { verl: 'reward.custom_reward_function.name', to: 'reward.custom_reward_function.name', met: [null] },
  { verl: 'reward.custom_reward_function.reward_kwargs.**', to: 'reward.reward_kwargs.**' },
  { verl: 'data.custom_reward_function.**', none: 'data' },
  { verl: 'model.lora.rank', to: 'model.lora_rank' },
  { verl: 'model.lora.alpha', to: 'model.lora_alpha' },
  {
    verl: 'actor.policy_loss.tau_pos',
    to: 'actor.tau_pos',
    how: 'verl’s loss reads actor.tau_pos instead of this key',
  },
  {
    verl: 'actor.policy_loss.tau_neg',
    to: 'actor.tau_neg',
    how: 'verl’s loss reads actor.tau_neg instead of this key',
  },
  { verl: '(actor|critic).optim.clip_grad', to: '$1.grad_clip' },
  { verl: '(actor|critic).optim.(lr_scheduler_type|warmup_style|lr_decay_style)', to: '$1.optim.lr_scheduler_type' },
  {
    verl: '(actor|critic|reward.prime).optim.(lr_decay_steps|total_training_steps)',
    to: '$1.optim.total_training_steps',
    convert: 'stepsOfRun',
  },
  { verl: '(actor|critic).optim.min_lr_factor', to: '$1.optim.min_lr_ratio' },
  { verl: '(actor|critic).optim.min_lr', to: '$1.optim.min_lr_ratio', convert: 'minLrRatio' },
  { verl: '(actor|critic).optim.lr_warmup_init', to: '$1.optim.init_lr_ratio', convert: 'minLrRatio' },
  { verl: '(actor|critic).optim.optimizer', met: ['AdamW', 'adam', 'Adam', 'adamw'], none: 'optimizer' },
  { verl: '(actor|critic).optim.optimizer_impl', met: ['torch.optim', null], none: 'optimizer' },
  {
    verl: '(actor|critic).optim.(override_optimizer_config|override_optimizer_config.**)',
    none: 'optimizer',
  },
  { verl: '(actor|critic).optim.muon_*', how: 'it is of the optimiser muon, which optim.optimizer would choose' },
  {
    verl: '(actor|critic).optim.(use_precision_aware_optimizer|main_grads_dtype|exp_avg_dtype|exp_avg_sq_dtype|use_layer_wise_distributed_optimizer)',
    met: ['fp32', 'float32', false, null],
    none: 'optimizer',
  },
  { verl: 'trainer.v1.trainer_mode', to: 'rollout.mode' },
  { verl: 'trainer.v1.sampler.max_off_policy_threshold', to: 'rollout.max_staleness' },

  // Sizes of a forward pass.
  { verl: 'actor.use_dynamic_bsz', to: 'actor.use_dynamic_bsz', how: packed, convert: 'onlyTrue', met: [true] },
  { verl: 'actor.ppo_max_token_len_per_gpu', to: 'actor.ppo_max_token_len_per_gpu', convert: 'tokenLimit' },
  {
    verl: 'actor.(ppo_micro_batch_size_per_gpu|ppo_micro_batch_size)',
    to: 'actor.ppo_max_token_len_per_gpu',
    how: 'a forward pass is bounded in tokens: this number of sequences of full length',
    convert: 'microBatch',
    met: [null],
  },
  { verl: 'critic.use_dynamic_bsz', how: packed },
  {
    verl: 'critic.(ppo_micro_batch_size_per_gpu|ppo_micro_batch_size|forward_micro_batch_size_per_gpu|forward_micro_batch_size)',
    to: 'critic.ppo_max_token_len_per_gpu',
    how: 'a forward pass is bounded in tokens: this number of sequences of full length',
    convert: 'criticMicroBatch',
    met: [null],
  },
  { verl: 'critic.(forward_max_token_len_per_gpu|ppo_infer_max_token_len_per_gpu)', how: logProbs },
  {
    verl: 'critic.ppo_mini_batch_size',
    to: 'actor.ppo_mini_batch_size',
    how: 'the critic takes the policy’s mini-batches',
    write: false,
    convert: 'asActor',
  },
  {
    verl: 'critic.ppo_epochs',
    to: 'actor.ppo_epochs',
    how: 'the critic is trained in the policy’s passes',
    write: false,
    convert: 'asActor',
  },
  {
    verl: 'critic.shuffle',
    to: 'actor.shuffle',
    how: 'the critic takes the policy’s mini-batches',
    write: false,
    convert: 'asActor',
  },
  {
    verl: 'ref.log_prob_max_token_len_per_gpu',
    to: 'ref.log_prob_max_token_len_per_gpu',
    convert: 'referenceLimit',
  },
  {
    verl: '(ref|rollout).(log_prob_max_token_len_per_gpu|log_prob_use_dynamic_bsz|log_prob_micro_batch_size_per_gpu|log_prob_micro_batch_size)',
    to: 'actor.ppo_max_token_len_per_gpu',
    how: logProbs,
    write: false,
  },
  {
    verl: 'rollout.max_num_seqs',
    to: 'rollout.max_num_seqs',
    how: 'samples that one worker decodes at once; in verl, one server',
  },

  // The model.
  {
    verl: 'critic.model.path',
    to: 'model.path',
    how: 'the critic begins as the policy’s model with a value head',
    write: false,
    convert: 'asModel',
  },
  {
    verl: 'critic.model.tokenizer_path',
    met: [null],
    to: 'model.tokenizer_path',
    how: 'policy and critic have one tokenizer',
    write: false,
  },
  {
    verl: '(model|critic.model|actor.megatron|reward.reward_model.model).use_remove_padding',
    how: packed,
    met: [true],
  },
  { verl: '(model|critic.model).enable_gradient_checkpointing', met: [false], none: 'activations' },
  { verl: '(model|critic.model).gradient_checkpointing_kwargs.**', met: off, none: 'activations' },
  { verl: '(model|critic.model).enable_activation_offload', how: inHostMemory, met: [true, ...off] },
  { verl: '(model|critic.model|data|actor|ref|critic|rollout).trust_remote_code', met: off, none: 'code' },
  { verl: '(model|critic.model).(use_liger|use_fused_kernels|tiled_mlp.enabled)', met: off, none: 'kernels' },
  { verl: '(model|critic.model).(fused_kernel_options|tiled_mlp).**', none: 'kernels' },
  { verl: '(model|critic.model|data).use_shm', met: off, none: 'internal' },
  {
    verl: '(model|critic.model).(override_config|override_config.**|hf_config_path)',
    met: [null],
    none: 'architecture',
  },
  { verl: '(model|critic.model).external_lib', met: [null], none: 'code' },
  { verl: '(model|critic.model).mtp.enable', met: off, none: 'algorithm' },
  { verl: '(model|critic.model).mtp.**', none: 'server' },
  { verl: 'model.(exclude_modules|lora.**)', met: [null], none: 'lora' },
  { verl: 'critic.model.(lora_rank|lora_alpha|target_modules|exclude_modules|lora.**)', met: [0, null], none: 'lora' },
  {
    verl: '(actor|ref|critic.model|critic|rollout).(fsdp_config|fsdp).dtype',
    to: 'model.compute_dtype',
    convert: 'dtype',
  },
  { verl: '(actor|ref|critic|actor.megatron).dtype', to: 'model.compute_dtype', convert: 'dtype' },
  {
    verl: 'rollout.dtype',
    to: 'model.compute_dtype',
    how: 'training and generating have the same arithmetic',
    convert: 'dtype',
  },
  {
    verl: '(actor|ref|critic|critic.model).(fsdp_config|fsdp).mixed_precision.param_dtype',
    to: 'model.compute_dtype',
    convert: 'dtype',
  },
  {
    verl: '(actor|ref|critic|critic.model).(fsdp_config|fsdp).(model_dtype|mixed_precision.**)',
    how: inFp32,
    met: ['fp32', 'float32'],
  },

  // Engines.
  {
    verl: '(model_engine|actor.model_engine|actor.strategy|ref.strategy|critic.strategy|reward.reward_model.strategy)',
    to: 'trainer.engine',
    how: ownEngine,
    write: false,
  },
  { verl: 'rollout.name', to: 'rollout.name', how: ownEngine, write: false },
  {
    verl: 'rollout.mode',
    to: 'rollout.mode',
    how: 'in verl it is the way of calling the server; in petrel rollout.mode is the trainer mode',
    write: false,
  },
  { verl: 'hybrid_engine', met: [true], none: 'ray' },
  {
    verl: 'trainer.n_gpus_per_node',
    to: 'fleet.pools',
    how: 'petrel counts worker processes with roles, not GPUs',
    write: false,
  },
  { verl: 'trainer.nnodes', to: 'fleet.pools', how: 'petrel’s workers run on one machine', write: false, met: [1] },
  {
    verl: 'trainer.device',
    to: 'fleet.pools',
    how: 'petrel’s engine runs on the processor',
    write: false,
    met: ['cpu'],
  },
  {
    verl: 'trainer.balance_batch',
    how: 'one trainer has the whole batch; micro-batches are formed by tokens',
    met: [true],
  },

  // Parallelism, offloading and kernels: sizes of 1 and switches that are off need nothing.
  {
    verl: `${anyRole}.**.(*_parallel_size|ulysses_sequence_parallel_size|tp|pp|ep|cp|etp|vpp)`,
    met: one,
    none: 'parallel',
  },
  { verl: `${anyRole}.(*_parallel_size|ulysses_sequence_parallel_size)`, met: one, none: 'parallel' },
  { verl: 'rollout.(tensor|data|expert|pipeline|moe_tensor)_*', met: one, none: 'parallel' },
  { verl: `${anyRole}.(*world_size|*parallel*)`, met: [...one, false], none: 'parallel' },
  { verl: 'reward.reward_model.**.*_parallel_size', met: one, none: 'rewardModel' },
  {
    verl: `${anyRole}.**.(param_offload|optimizer_offload|grad_offload|offload_policy|enable_fsdp_offload|enable_activation_offload)`,
    how: inHostMemory,
    met: [true, ...off],
  },
  {
    verl: `${anyRole}.**.(use_torch_compile|entropy_checkpointing|entropy_from_logits_with_chunking|forward_prefetch|full_determinism)`,
    met: off,
    none: 'kernels',
  },
  {
    verl: `${anyRole}.(use_torch_compile|entropy_checkpointing|entropy_from_logits_with_chunking|entropy_from_logits_chunk_size|pad_to_length|use_fused_kernels|full_determinism)`,
    met: off,
    none: 'kernels',
  },
  { verl: `${anyRole}.**.router_replay.**`, met: off, none: 'moe' },
  { verl: `${anyRole}.(router_replay.**|enable_rollout_routing_replay)`, met: off, none: 'moe' },
  { verl: 'rollout.moe_load_balance_metrics_interval', met: off, none: 'moe' },
  { verl: `${anyRole}.**.override_transformer_config.(moe_*|*expert*)`, none: 'moe' },
  { verl: `${anyRole}.**.override_transformer_config.**`, none: 'kernels' },
  { verl: `${anyRole}.mindspeed.**.(moe_*|*expert*|*router*)`, none: 'moe' },
  {
    verl: `${anyRole}.(fsdp_config|fsdp|megatron|mindspeed|veomni|torchtitan|engine|automodel|mcore).**`,
    none: 'sharding',
  },
  { verl: 'critic.model.(fsdp_config|fsdp).**', none: 'sharding' },

  // Generating.
  { verl: 'rollout.calculate_log_probs', how: 'log-probs of sampled tokens are always kept', met: [true] },
  { verl: 'rollout.ignore_eos', met: off, none: 'server' },
  { verl: 'rollout.over_sample_rate', met: [0], none: 'algorithm' },
  { verl: 'rollout.quantization', met: [null], none: 'server' },
  { verl: 'rollout.multi_turn.enable', to: 'rollout.multi_turn.enable', convert: 'severalTurns' },
  { verl: 'rollout.multi_turn.**', met: off, none: 'tools' },
  { verl: 'rollout.chat_scheduler', met: off, none: 'tools' },
  { verl: 'rollout.agent.default_agent_loop', met: ['single_turn_agent'], none: 'tools' },
  { verl: 'rollout.agent.**', met: off, none: 'tools' },
  { verl: '(env|agent|tools).**', met: off, none: 'tools' },
  { verl: 'rollout.(profiler|trace|prometheus).**', met: off, none: 'profiling' },
  { verl: 'rollout.(nnodes|n_gpus_per_node)', none: 'async' },
  { verl: 'rollout.(total_rollout_steps|staleness*|checkpoint_engine.backend)', none: 'async' },
  { verl: 'rollout.(mtp|mtp.**|speculative*)', none: 'algorithm' },
  {
    verl: 'rollout.(gpu_memory_utilization|enforce_eager|free_cache_engine|load_format|enable_chunked_prefill|enable_prefix_caching|max_num_batched_tokens|max_model_len|disable_log_stats|layered_summon|multi_stage_wake_up|skip_tokenizer_init|logprobs_mode|scheduling_policy|cudagraph_capture_sizes|limit_images|seed|update_weights_bucket_megabytes|disable_custom_all_reduce|quantization*)',
    none: 'server',
  },
  { verl: 'rollout.(engine_kwargs|checkpoint_engine|server|disaggregation|sglang_kwargs|custom).**', none: 'server' },

  // Rewards.
  { verl: 'reward.reward_manager.source', how: allRewards, met: ['register'], none: 'rewardManager' },
  { verl: 'reward.reward_manager.module.**', met: ['custom_reward_manager', null], none: 'rewardManager' },
  { verl: 'reward.reward_kwargs.overlong_buffer_cfg.enable', to: 'reward.overlong_buffer.enable' },
  { verl: 'reward.reward_kwargs.overlong_buffer_cfg.len', to: 'reward.overlong_buffer.len' },
  { verl: 'reward.reward_kwargs.overlong_buffer_cfg.penalty_factor', to: 'reward.overlong_buffer.penalty_factor' },
  { verl: 'reward.reward_kwargs.overlong_buffer_cfg.log', how: 'the penalty is always a metric' },
  { verl: 'reward.overlong_buffer.log', how: 'the penalty is always a metric' },
  { verl: 'reward.reward_kwargs.max_resp_len', how: 'the penalty counts up to data.max_response_length' },
  { verl: 'reward.max_concurrent', to: 'reward.endpoint.max_concurrent', how: perRun },
  { verl: 'reward.max_rpm', to: 'reward.endpoint.max_rpm', how: perRun },
  { verl: 'reward.max_tpm', to: 'reward.endpoint.max_tpm', how: perRun },
  { verl: 'reward.estimated_tokens_per_request', to: 'reward.endpoint.estimated_tokens_per_request', how: perRun },
  {
    verl: 'reward.timeout',
    to: 'reward.timeout',
    how: 'a sample that takes longer counts as failed; in verl it scores 0',
  },
  { verl: 'reward.launch_reward_fn_async', met: off, how: 'a sample’s reward is computed by a reward worker' },
  {
    verl: 'reward.reward_model.(rollout|model|fsdp_config|megatron|profiler|checkpoint_engine).**',
    none: 'rewardModel',
  },
  {
    verl: 'reward.reward_model.(enable_resource_pool|n_gpus_per_node|nnodes|micro_batch_size*|max_length|use_dynamic_bsz|forward_max_token_len_per_gpu|use_reward_loop|input_tokenizer|reward_loop*|ulysses*|trust_remote_code)',
    none: 'rewardModel',
  },
  { verl: 'reward.use_reward_loop', none: 'rewardModel' },
  {
    verl: 'reward.reward_model.(mini_batch_size|load_weight|param_offload|nccl_timeout|model_dtype|reward_model_type)',
    none: 'rewardModel',
  },

  // Data.
  { verl: 'data.(return_raw_chat|return_full_prompt)', how: 'every row keeps its messages' },
  {
    verl: 'data.(image_key|video_key|audio_key|image_patch_size|mm_processor_kwargs|mm_processor_kwargs.**|return_multi_modal_inputs)',
    none: 'vision',
  },
  {
    verl: 'data.(filter_overlong_prompts_workers|dataloader_num_workers|num_workers|datagen.**|validation_shuffle|cache_dir)',
    met: off,
    none: 'internal',
  },
  { verl: 'data.(return_raw_input_ids|balance_dp_token|reward_model_key|path)', none: 'internal' },
  { verl: 'data.(pad_mode|ignore_input_ids_mismatch)', how: packed },
  {
    verl: 'data.(multiturn.enable|multiturn.**|messages_key|tools_key|enable_thinking_key|enable_thinking_default)',
    met: off,
    none: 'turns',
  },
  { verl: 'data.(prompt_dict_keys|response_dict_keys)', met: [null], none: 'data' },
  { verl: 'data.sampler.**', met: [null], none: 'sampler' },
  { verl: 'data.(custom_cls.**|datagen.**|tokenizer)', met: [null], none: 'data' },
  { verl: 'data.(tool_config_path|function_tool_path)', met: [null], none: 'tools' },
  { verl: 'data.continuous_token.**', met: off, none: 'tools' },
  { verl: '**.(freeze_vision_tower|num_images_in_input)', met: off, none: 'vision' },

  // The algorithm.
  {
    verl: 'algorithm.(filter_groups.max_inflight_gen_batches|rollout_correction.rollout_token_veto_threshold)',
    none: 'algorithm',
  },
  {
    verl: 'algorithm.rollout_is_level',
    to: 'algorithm.rollout_correction.rollout_is',
    convert: 'appliedLevel',
  },
  { verl: 'algorithm.rollout_is', how: 'algorithm.rollout_is_level decides', met: off },
  {
    verl: 'actor.tis_imp_ratio_cap',
    to: 'algorithm.rollout_correction.rollout_is_threshold',
    convert: 'truncation',
    met: [-1, 0, null],
    also: { 'algorithm.rollout_correction.rollout_is': 'token' },
  },
  { verl: 'algorithm.rollout_is_mode', met: ['truncate', null], none: 'algorithm' },
  {
    verl: 'algorithm.(rollout_is_threshold_lower|rollout_is_veto_threshold|rollout_correction.rollout_rs_threshold_lower|rollout_correction.use_policy_gradient)',
    met: off,
    none: 'algorithm',
  },
  { verl: 'algorithm.(dpo_beta|dpo_loss_type|dpo_label_smoothing)', to: 'actor.policy_loss.$1' },
  { verl: 'algorithm.gigpo.**', none: 'algorithm' },
  { verl: 'trainer.ref_update_freq', met: [-1, 0, null], none: 'algorithm' },
  {
    verl: '(rollout.use_fire_sampling|rollout.skip_rollout|rollout.skip.enable|actor.qat.enable)',
    met: off,
    none: 'algorithm',
  },
  { verl: 'rollout.skip.**', how: 'rollout.skip.enable decides' },
  { verl: 'actor.qat.**', how: 'actor.qat.enable decides' },
  { verl: '(actor|critic).optim.weight_decay_incr_style', met: ['constant', null], none: 'optimizer' },
  {
    verl: '(actor|critic).optim.(lr_wsd_decay_steps|lr_wsd_decay_style)',
    met: [null, 'exponential'],
    none: 'optimizer',
  },
  { verl: '(actor|critic).optim.use_checkpoint_opt_param_scheduler', met: off, none: 'resume' },
  { verl: '(actor|ref).rollout_n', how: 'rollout.n decides', met: [null] },
  { verl: 'trainer.spo.enable', to: 'algorithm.adv_estimator', convert: 'spo' },
  { verl: 'trainer.spo.rho.**', to: 'algorithm.spo.rho.**' },
  { verl: 'trainer.spo.(offline_values|offline_N)', met: [null], none: 'trackers' },
  { verl: 'actor.(calculate_sum_pi_squared|sum_pi_squared*)', met: off, none: 'algorithm' },
  { verl: 'critic.loss_agg_mode', met: ['token-mean'], none: 'critic' },
  { verl: 'critic.(rollout_n|data_loader_seed)', how: 'the critic takes the policy’s mini-batches' },
  { verl: 'distillation.teacher_models.teacher_model.model_path', to: 'distillation.teacher_model.model_path' },
  { verl: 'distillation.(n_gpus_per_node|nnodes|teacher_models.**)', none: 'distillation' },
  { verl: 'async_training.**', none: 'async' },

  // Checkpoints and the rest of the trainer.
  {
    verl: 'trainer.resume_mode',
    met: ['disable'],
    how: 'petrel run begins a new run; petrel resume <run> continues one',
  },
  {
    verl: 'trainer.(resume_from_path|del_local_ckpt_after_load|default_hdfs_dir|esi_redundant_time)',
    met: [null, false, 0],
    none: 'resume',
  },
  {
    verl: 'trainer.max_critic_ckpt_to_keep',
    to: 'trainer.max_actor_ckpt_to_keep',
    how: 'a checkpoint holds policy and critic',
    write: false,
    met: [null],
  },
  {
    verl: '(actor|critic).checkpoint.**',
    how: 'a checkpoint holds everything that a resume needs; petrel ckpt export writes a Hugging Face folder',
  },
  { verl: 'trainer.log_val_generations', how: 'petrel samples --validation shows them', met: [0] },
  {
    verl: 'trainer.(rollout_data_dir|validation_data_dir)',
    how: 'samples are in the store: petrel samples',
    met: [null],
  },
  { verl: 'trainer.(use_v1|use_legacy_worker_impl|v1.**|ray_wait_register_center_timeout)', none: 'internal' },
  { verl: '(ray_kwargs|ray_init|env_vars).**', none: 'ray' },
  { verl: '(working_dir|excludes|trainer.n_env_gpus_per_node|trainer.n_rollout_gpus_per_node)', none: 'ray' },
  { verl: 'trainer.(log_freq|tensorboard_dir|rl_logging_board_dir|scheduler|dump_high_diff*)', none: 'internal' },
  { verl: '(trainer.remove_previous_ckpt_in_save|trainer.default_remote_dir)', met: off, none: 'resume' },
  { verl: '(actor|ref|critic|rollout).(load_weight|skip_dump_dir|layer_name_map.**)', none: 'internal' },
  { verl: '(actor|ref|critic).param_offload', how: inHostMemory, met: [true, ...off] },
  { verl: 'model.enable_activation_offloading', how: inHostMemory, met: [true, ...off] },
  { verl: '(actor.use_remove_padding|use_remove_padding)', how: packed, met: [true] },
  { verl: 'ulysses_sequence_parallel_size', met: one, none: 'parallel' },
  { verl: '(teacher|distillation.teacher).**', none: 'distillation' },
  { verl: '(actor.use_rollout_log_probs|rollout.total_epochs|rollout.test_freq)', none: 'async' },
  { verl: '(actor|ref|critic).profile.**', none: 'profiling' },
  { verl: '(profiler|global_profiler).**', none: 'profiling' },
  { verl: '(engine|optim|model)', none: 'internal' },
  { verl: 'trainer.(num_global_batch|num_data_storage_units|num_data_controllers)', none: 'internal' },
  { verl: 'rollout.(sglang_rollout_mode|enable_sleep_mode)', none: 'server' },
  { verl: 'trainer.(npu_profile|controller_nsight_options|worker_nsight_options|checkpoint).**', none: 'profiling' },
  { verl: 'nccl_timeout', none: 'ray' },
  { verl: '(global_profiler|trainer.profile*).**', none: 'profiling' },
  { verl: 'trainer.(profile_steps|profile_interval)', met: [null, -1], none: 'profiling' },
  { verl: '**.profiler.**', none: 'profiling' },
  { verl: '(transfer_queue|skip|hydra).**', none: 'internal' },
  { verl: '(actor|ref|rollout|critic|model).nccl_timeout', none: 'ray' },
  { verl: '**._target_', none: 'internal' },
];
