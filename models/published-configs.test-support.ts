/**
 * Published configs of models whose size is known: the values of their config.json that decide shapes, and the number
 * of parameters that their authors state. A mixture also has the number that a token meets.
 */
import type { JsonObject } from './fields.ts';

export interface PublishedModel {
  readonly config: JsonObject;
  /** Parameters, in 10⁹. */
  readonly billions: number;
  readonly activeBillions?: number;
}

const qwen2 = { architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2', vocab_size: 152064 };

export const publishedModels: Readonly<Record<string, PublishedModel>> = {
  'Qwen2.5-0.5B': {
    config: {
      ...qwen2,
      vocab_size: 151936,
      hidden_size: 896,
      intermediate_size: 4864,
      num_hidden_layers: 24,
      num_attention_heads: 14,
      num_key_value_heads: 2,
      max_position_embeddings: 32768,
      tie_word_embeddings: true,
    },
    billions: 0.494,
  },
  'Qwen2.5-1.5B': {
    config: {
      ...qwen2,
      vocab_size: 151936,
      hidden_size: 1536,
      intermediate_size: 8960,
      num_hidden_layers: 28,
      num_attention_heads: 12,
      num_key_value_heads: 2,
      max_position_embeddings: 32768,
      tie_word_embeddings: true,
    },
    billions: 1.54,
  },
  'Qwen2.5-7B': {
    config: {
      ...qwen2,
      hidden_size: 3584,
      intermediate_size: 18944,
      num_hidden_layers: 28,
      num_attention_heads: 28,
      num_key_value_heads: 4,
      max_position_embeddings: 131072,
      tie_word_embeddings: false,
    },
    billions: 7.62,
  },
  'Qwen2.5-32B': {
    config: {
      ...qwen2,
      hidden_size: 5120,
      intermediate_size: 27648,
      num_hidden_layers: 64,
      num_attention_heads: 40,
      num_key_value_heads: 8,
      max_position_embeddings: 131072,
      tie_word_embeddings: false,
    },
    billions: 32.8,
  },
  'Llama-3.1-70B': {
    config: {
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      vocab_size: 128256,
      hidden_size: 8192,
      intermediate_size: 28672,
      num_hidden_layers: 80,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      max_position_embeddings: 131072,
      tie_word_embeddings: false,
    },
    billions: 70.6,
  },
  'Mixtral-8x7B': {
    config: {
      architectures: ['MixtralForCausalLM'],
      model_type: 'mixtral',
      vocab_size: 32000,
      hidden_size: 4096,
      intermediate_size: 14336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      num_local_experts: 8,
      num_experts_per_tok: 2,
      max_position_embeddings: 32768,
      tie_word_embeddings: false,
    },
    billions: 46.7,
    activeBillions: 12.9,
  },
  'Qwen3-30B-A3B': {
    config: {
      architectures: ['Qwen3MoeForCausalLM'],
      model_type: 'qwen3_moe',
      vocab_size: 151936,
      hidden_size: 2048,
      intermediate_size: 6144,
      moe_intermediate_size: 768,
      num_hidden_layers: 48,
      num_attention_heads: 32,
      num_key_value_heads: 4,
      head_dim: 128,
      num_experts: 128,
      num_experts_per_tok: 8,
      max_position_embeddings: 40960,
      tie_word_embeddings: false,
    },
    billions: 30.5,
    activeBillions: 3.3,
  },
  'gemma-2-9b': {
    config: {
      architectures: ['Gemma2ForCausalLM'],
      model_type: 'gemma2',
      vocab_size: 256000,
      hidden_size: 3584,
      intermediate_size: 14336,
      num_hidden_layers: 42,
      num_attention_heads: 16,
      num_key_value_heads: 8,
      head_dim: 256,
      max_position_embeddings: 8192,
      attn_logit_softcapping: 50,
      final_logit_softcapping: 30,
    },
    billions: 9.24,
  },
  'DeepSeek-V3': {
    config: {
      architectures: ['DeepseekV3ForCausalLM'],
      model_type: 'deepseek_v3',
      vocab_size: 129280,
      hidden_size: 7168,
      intermediate_size: 18432,
      moe_intermediate_size: 2048,
      num_hidden_layers: 61,
      num_attention_heads: 128,
      num_key_value_heads: 128,
      q_lora_rank: 1536,
      kv_lora_rank: 512,
      qk_nope_head_dim: 128,
      qk_rope_head_dim: 64,
      v_head_dim: 128,
      n_routed_experts: 256,
      n_shared_experts: 1,
      num_experts_per_tok: 8,
      first_k_dense_replace: 3,
      topk_method: 'noaux_tc',
      max_position_embeddings: 163840,
      tie_word_embeddings: false,
    },
    billions: 671,
    activeBillions: 37,
  },
};
