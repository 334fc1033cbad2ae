import { describe, expect, it } from 'vitest';
import type { Division } from '../../core/division.ts';
import { plansOf } from '../engine-plans.ts';
import { savedModel } from '../../tests/contracts/model.ts';

const mixture = {
  ...{ architectures: ['Qwen3MoeForCausalLM'], model_type: 'qwen3_moe' },
  ...{ num_experts: 6, num_experts_per_tok: 2, moe_intermediate_size: 16, head_dim: 8, decoder_sparse_step: 1 },
};
const refusal = async (model: object, division: Division) =>
  plansOf('torch')
    .readModel(savedModel({ num_attention_heads: 8, num_key_value_heads: 2, ...model }, model), division)
    .then(
      () => undefined,
      (error: { readonly message: string; readonly hint?: string }) =>
        `${error.message.replace(/\/\S+\/config\.json/, 'config.json')}; ${error.hint}`,
    );

describe('a model that is to be divided', () => {
  it.each<readonly [object, Division]>([
    [{}, { tensor: 2 }],
    // Heads of keys are repeated where they are too few.
    [{}, { sequence: 8 }],
    [{}, { sequence: 4, tensor: 2 }],
    [mixture, { experts: 3 }],
    [mixture, { experts: 2, tensor: 2, sequence: 2 }],
  ])('%o by %o', async (model, division) => {
    expect(await refusal(model, division)).toBeUndefined();
  });

  it.each<readonly [object, Division, string]>([
    [
      {},
      { tensor: 4 },
      'trainer.tensor_model_parallel_size=4: config.json has 8 heads, and 2 of keys and values; use a divisor of 2',
    ],
    [
      { num_key_value_heads: 8 },
      { sequence: 3 },
      'trainer.ulysses_sequence_parallel_size=3: config.json has 8 heads; use a divisor of 8',
    ],
    [
      { architectures: ['Gemma2ForCausalLM'], model_type: 'gemma2', attn_logit_softcapping: 50, head_dim: 8 },
      { sequence: 2 },
      'trainer.ulysses_sequence_parallel_size=2: config.json has layers that attend by a mask of the whole pack, whose tokens cannot be divided; use 1',
    ],
    [
      { rope_scaling: { rope_type: 'longrope', short_factor: [1], long_factor: [1] } },
      { sequence: 2 },
      'trainer.ulysses_sequence_parallel_size=2: config.json has longrope positions, which follow from the length of a whole sequence; use 1',
    ],
    [
      {},
      { experts: 2 },
      'trainer.expert_model_parallel_size=2: config.json has no experts; use 1, and trainer.fsdp_size to divide the model',
    ],
    [mixture, { experts: 4 }, 'trainer.expert_model_parallel_size=4: config.json has 6 experts; use a divisor of 6'],
  ])('%o is not by %o', async (model, division, message) => {
    expect(await refusal(model, division)).toBe(message);
  });
});
