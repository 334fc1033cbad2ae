/**
 * What becomes of verl's keys of engines when a recipe trains with torch. These rows are read before those of rules.ts,
 * and have their form. Only data.
 */
import type { Rule } from './rules.ts';

const off = [false, null, 'disabled', 'none'];
const ofFsdp = '(actor|ref|critic|critic.model).(fsdp_config|fsdp)';
const chunks = 'log-probs and entropy are computed in chunks, and again in the backward pass';

export const TORCH_RULES: readonly Rule[] = [
  {
    verl: '(model_engine|actor.strategy|ref.strategy|critic.strategy)',
    to: 'trainer.engine',
    how: 'trainer.engine: torch divides a model by FSDP2',
    write: false,
    met: ['fsdp', 'fsdp2'],
  },
  { verl: 'rollout.name', to: 'rollout.name', convert: 'sampler' },
  {
    verl: 'trainer.device',
    to: 'trainer.engine',
    how: 'torch computes on the device for which it is installed: petrel engine install torch --device cuda',
    write: false,
  },

  // FSDP2.
  { verl: `${ofFsdp}.wrap_policy.**`, how: 'every layer of a model is a unit of FSDP2' },
  { verl: `${ofFsdp}.reshard_after_forward`, met: [true], none: 'sharding' },
  { verl: `${ofFsdp}.use_orig_params`, how: 'FSDP2 keeps the parameters that the model has' },
  { verl: `${ofFsdp}.full_determinism`, to: 'deterministic', convert: 'determinism' },
  {
    verl: `${ofFsdp}.(entropy_from_logits_with_chunking|entropy_from_logits_chunk_size|entropy_checkpointing)`,
    how: chunks,
    met: [true],
  },
  {
    verl: '(actor|ref|critic).(entropy_from_logits_with_chunking|entropy_from_logits_chunk_size|entropy_checkpointing)',
    how: chunks,
    met: [true],
  },
  {
    verl: '(actor|ref|critic|rollout).**.(param_offload|optimizer_offload|grad_offload|offload_policy|enable_fsdp_offload|enable_activation_offload)',
    met: off,
    none: 'offload',
  },
  { verl: '(actor|ref|critic).param_offload', met: off, none: 'offload' },
  {
    verl: '(model|critic.model).(enable_activation_offload|enable_activation_offloading)',
    met: off,
    none: 'offload',
  },

  // Adapters.
  {
    verl: 'critic.model.(lora_rank|lora_alpha|target_modules)',
    to: 'model.$1',
    how: 'the critic gets an adapter of its own, of the policy’s form',
    write: false,
    convert: 'asPolicyModel',
  },
  { verl: 'model.lora.adapter_path', to: 'model.lora_adapter_path' },
  { verl: 'model.lora.type', met: ['lora'], none: 'lora' },
  { verl: 'model.lora.merge', met: [false], none: 'lora' },
  { verl: 'model.lora.dropout', met: [0], none: 'lora' },
  { verl: 'rollout.layered_summon', how: 'only the adapter goes to the sampler' },
];

/** What becomes of the keys of verl's vLLM where petrel's samples. */
export const VLLM_RULES: readonly Rule[] = [
  {
    verl: 'rollout.gpu_memory_utilization',
    how: 'vLLM takes what rollout.max_num_seqs samples of full length need, at most 40 % of the memory that is free',
  },
  { verl: 'rollout.max_num_batched_tokens', how: 'a step of vLLM has 8,192 tokens, or one sample of full length' },
  { verl: 'rollout.max_model_len', how: 'the longest prompt and response of the recipe', met: [null] },
  { verl: 'rollout.load_format', how: 'vLLM gets the weights from the trainer before the first sample' },
  { verl: 'rollout.seed', how: 'every sample has a seed of its own, which follows from the run’s' },
  {
    verl: 'rollout.(pipeline_model_parallel_size|expert_parallel_size)',
    met: [1, null],
    none: 'samplerLayout',
  },
  { verl: 'rollout.enforce_eager', met: [false], none: 'server' },
  {
    verl: 'rollout.(enable_chunked_prefill|enable_prefix_caching|disable_log_stats|skip_tokenizer_init)',
    met: [true],
    none: 'server',
  },
  { verl: 'rollout.logprobs_mode', met: ['processed_logprobs'], none: 'server' },
  { verl: 'rollout.scheduling_policy', met: ['fcfs'], none: 'server' },
  { verl: 'rollout.(free_cache_engine|multi_stage_wake_up|enable_sleep_mode)', met: off, none: 'colocation' },
];

/** What becomes of the GPUs of verl's vLLM where petrel's has as many. */
export const VLLM_GPU_RULES: readonly Rule[] = [
  {
    verl: 'rollout.tensor_model_parallel_size',
    to: 'rollout.tensor_model_parallel_size',
    met: [1, null],
  },
  { verl: 'rollout.data_parallel_size', how: 'a vLLM on every GPU, or on as many as share a model' },
];

const one = [1, null];
const alike = 'all models of a run are divided in the same way';

/** What becomes of the number of GPUs where the model is divided over them. */
export const GPU_RULES: readonly Rule[] = [
  {
    verl: 'actor.**.(offload_policy|enable_fsdp_offload)',
    to: 'trainer.cpu_offload',
    how: 'weights, gradients and moments of all models lie in the machine’s own memory',
    convert: 'offload',
  },
  {
    verl: 'actor.**.(param_offload|optimizer_offload|grad_offload)',
    to: 'trainer.cpu_offload',
    how: 'the state stays on the GPUs beside vLLM; trainer.cpu_offload=true keeps it in the machine’s own memory',
    write: false,
    met: off,
  },
  {
    verl: '(actor|actor.fsdp_config|actor.fsdp).ulysses_sequence_parallel_size',
    to: 'trainer.ulysses_sequence_parallel_size',
    convert: 'sharedSize',
    met: one,
  },
  {
    verl: 'actor.veomni.ulysses_parallel_size',
    to: 'trainer.ulysses_sequence_parallel_size',
    convert: 'sharedSize',
    met: one,
  },
  {
    verl: 'actor.megatron.(tensor_model_parallel_size|expert_model_parallel_size)',
    to: 'trainer.$1',
    convert: 'sharedLayers',
    met: one,
  },
  {
    verl: 'actor.veomni.expert_parallel_size',
    to: 'trainer.expert_model_parallel_size',
    convert: 'sharedLayers',
    met: one,
  },
  {
    verl: 'actor.(ppo_micro_batch_size_per_gpu|ppo_micro_batch_size)',
    to: 'actor.ppo_max_token_len_per_gpu',
    how: 'a forward pass is bounded in tokens: this number of sequences of full length',
    convert: 'sharedMicroBatch',
    met: [null],
  },
  {
    verl: '(ref|critic|critic.model).**.(ulysses_sequence_parallel_size|tensor_model_parallel_size|expert_model_parallel_size)',
    how: alike,
    met: one,
  },
  { verl: '(ref|critic).ulysses_sequence_parallel_size', how: alike, met: one },
  { verl: 'trainer.n_gpus_per_node', to: 'trainer.fsdp_size', how: 'one process of torch for each GPU' },
  { verl: 'trainer.nnodes', met: [1], none: 'machines' },
  { verl: `${ofFsdp}.fsdp_size`, to: 'trainer.fsdp_size', convert: 'shardSize', write: false },
];
