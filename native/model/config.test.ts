import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { isTied } from './spec.ts';
import type { GqaSpec } from './spec.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { readDecoderSpec } from './config.ts';

const llama = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  intermediate_size: 56,
  vocab_size: 96,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-6,
  hidden_act: 'silu',
  torch_dtype: 'float32',
};
const qwen2 = { ...llama, architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2' };
const qwen3 = { ...llama, architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3', head_dim: 16 };
const mistral = { ...llama, architectures: ['MistralForCausalLM'], model_type: 'mistral' };
const gemma2 = { ...llama, architectures: ['Gemma2ForCausalLM'], model_type: 'gemma2', head_dim: 16 };
/** What a file may leave out is left out: num_key_value_heads, max_position_embeddings, rms_norm_eps, hidden_act. */
const phi3 = {
  architectures: ['Phi3ForCausalLM'],
  model_type: 'phi3',
  hidden_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  intermediate_size: 37,
  vocab_size: 96,
};
const llama3Rope = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

describe('readDecoderSpec', () => {
  it('reads the keys of transformers 4 and 5 to the same config', () => {
    const v4 = { ...llama, rope_theta: 5e5, rope_scaling: llama3Rope };
    const { torch_dtype: dtype, ...rest } = llama;
    const v5 = { ...rest, dtype, rope_parameters: { ...llama3Rope, rope_theta: 5e5 } };
    expect(readDecoderSpec(v5)).toEqual(readDecoderSpec(v4));
    const nested = { ...rest, dtype, rope_parameters: { full_attention: { ...llama3Rope, rope_theta: 5e5 } } };
    expect(readDecoderSpec(nested)).toEqual(readDecoderSpec(v4));
  });

  it('uses the defaults of each family', () => {
    expect(mixerOf(llama)).toMatchObject({ headDim: 8, window: 0, softcap: 0, scale: 8 ** -0.5 });
    expect(biasesOf(llama)).toEqual([]);
    expect(isTied(readDecoderSpec(llama))).toBe(false);
    expect(biasesOf(qwen2)).toEqual(['self_attn.k_proj', 'self_attn.q_proj', 'self_attn.v_proj']);
    expect(mixerOf(qwen3)).toMatchObject({
      headDim: 16,
      queryNorm: { weight: 'model.layers.0.self_attn.q_norm.weight', eps: 1e-6, offset: 0 },
    });
    const { head_dim: _, ...plain } = qwen3;
    expect(mixerOf(plain).headDim).toBe(128);
    expect(mixerOf({ ...plain, head_dim: null }).headDim).toBe(8);
    expect(isTied(readDecoderSpec(gemma2))).toBe(true);
    const { head_dim: __, ...gemma } = gemma2;
    expect(mixerOf(gemma)).toMatchObject({ headDim: 256, softcap: 50, scale: 1 / 16 });
    expect(readDecoderSpec(gemma2).head).toMatchObject({ softcap: 30 });
    expect(mixerOf(phi3)).toMatchObject({ heads: 6, kvHeads: 6, headDim: 8, window: 0, softcap: 0, scale: 8 ** -0.5 });
    expect(mixerOf({ ...phi3, num_key_value_heads: null }).kvHeads).toBe(6);
    expect(mixerOf({ ...phi3, num_key_value_heads: 3, head_dim: 24 })).toMatchObject({ kvHeads: 3, headDim: 24 });
    expect(biasesOf(phi3)).toEqual([]);
    expect(isTied(readDecoderSpec(phi3))).toBe(false);
    expect(isTied(readDecoderSpec({ ...phi3, tie_word_embeddings: true }))).toBe(true);
    expect(readDecoderSpec(phi3)).toMatchObject({ maxPositions: 4096, finalNorm: { eps: 1e-5, offset: 0 } });
  });

  it('puts biases where each family has them', () => {
    const all = ['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) => `self_attn.${name}`);
    const mlp = ['gate_proj', 'up_proj', 'down_proj'].map((name) => `mlp.${name}`);
    expect(biasesOf({ ...llama, attention_bias: true, mlp_bias: true })).toEqual([...all, ...mlp].sort());
    expect(biasesOf({ ...qwen2, attention_bias: true })).not.toContain('self_attn.o_proj');
    expect(biasesOf({ ...qwen3, attention_bias: true })).toEqual([...all].sort());
  });

  it('gives a window only to layers with sliding attention', () => {
    const window = { use_sliding_window: true, sliding_window: 4, max_window_layers: 1 };
    expect(windowsOf({ ...qwen2, ...window })).toEqual([0, 4]);
    expect(windowsOf({ ...qwen2, ...window, use_sliding_window: false })).toEqual([0, 0]);
    expect(windowsOf({ ...qwen2, ...window, layer_types: ['sliding_attention', 'full_attention'] })).toEqual([4, 0]);
    expect(windowsOf({ ...llama, sliding_window: 4 })).toEqual([0, 0]);
    expect(windowsOf({ ...mistral, sliding_window: 7 })).toEqual([7, 7]);
    expect(windowsOf({ ...mistral, sliding_window: null })).toEqual([0, 0]);
    expect(windowsOf(mistral)).toEqual([4096, 4096]);
    expect(windowsOf({ ...gemma2, sliding_window: 6 })).toEqual([6, 0]);
    expect(windowsOf({ ...phi3, sliding_window: 2047 })).toEqual([2047, 2047]);
    expect(windowsOf({ ...phi3, sliding_window: null })).toEqual([0, 0]);
    expect(windowsOf(phi3)).toEqual([0, 0]);
  });

  it('reads null as off where absent is a default', () => {
    const off = { ...gemma2, attn_logit_softcapping: null, final_logit_softcapping: null };
    expect(mixerOf(off).softcap).toBe(0);
    expect(readDecoderSpec(off).head).toMatchObject({ softcap: 0 });
  });

  it('reads the heads that the caller can use', () => {
    const value = { ...qwen2, architectures: ['Qwen2ForTokenClassification'], num_labels: 1 };
    const score = { ...qwen2, architectures: ['Qwen2ForSequenceClassification'], id2label: { 0: 'a', 1: 'b', 2: 'c' } };
    const all = ['tokens', 'values', 'scores'] as const;
    expect(() => readDecoderSpec(value)).toThrow(/Qwen2ForTokenClassification" is not supported/);
    expect(readDecoderSpec(value, 'config.json', all).head).toEqual({
      kind: 'values',
      projection: [{ weight: 'score.weight', rows: 1, bias: 'score.bias' }],
    });
    expect(readDecoderSpec(score, 'config.json', all).head).toMatchObject({ kind: 'scores', labels: 3 });
    expect(() => readDecoderSpec({ ...value, num_labels: 2 }, 'config.json', all)).toThrow(/one label, found 2/);
  });

  it('computes plain, linear and llama3 rope', () => {
    const plain = mixerOf({ ...llama, rope_scaling: null }).rope;
    expect(plain).toEqual([1, 0.1, 0.01, 0.001].map((x) => expect.closeTo(x, 15)));
    const linear = mixerOf({ ...llama, rope_scaling: { type: 'linear', factor: 4 } }).rope;
    expect(linear).toEqual(plain.map((x) => x / 4));
    const scaled = mixerOf({ ...llama, rope_scaling: llama3Rope }).rope;
    expect(scaled[0]).toBe(1);
    expect(scaled[3]).toBe((plain[3] as number) / 8);
    const smooth = (64 / ((2 * Math.PI) / 0.1) - 1) / 3;
    expect(scaled[1]).toBeCloseTo(((1 - smooth) * 0.1) / 8 + smooth * 0.1, 14);
  });

  it('turns only the leading dimensions of a head with partial_rotary_factor', () => {
    const plain = mixerOf({ ...phi3, head_dim: 16 }).rope;
    expect(plain).toEqual(Array.from({ length: 8 }, (_, i) => expect.closeTo(10_000 ** (-i / 8), 15)));
    expect(mixerOf({ ...phi3, head_dim: 16, rope_scaling: null, partial_rotary_factor: 1 }).rope).toEqual(plain);
    const six = Array.from({ length: 6 }, (_, i) => expect.closeTo(500 ** (-i / 6), 15));
    const partial = { ...phi3, head_dim: 16, rope_theta: 500, partial_rotary_factor: 0.75 };
    expect(mixerOf(partial)).toMatchObject({ headDim: 16, scale: 1 / 4, rope: six });
    const v5 = { rope_type: 'default', rope_theta: 500, partial_rotary_factor: 0.75 };
    expect(mixerOf({ ...phi3, head_dim: 16, rope_parameters: v5 }).rope).toEqual(six);
  });

  it.each([
    [
      { rope_scaling: { type: 'longrope', short_factor: [1], long_factor: [4] } },
      /"longrope" is not supported; supported/,
    ],
    [
      { rope_scaling: { type: 'su', short_factor: [1], long_factor: [4] } },
      /"su" is not supported; supported: default/,
    ],
    [{ rope_parameters: { rope_type: 'longrope', rope_theta: 1e4 } }, /"longrope" is not supported/],
    [{ partial_rotary_factor: 0.4 }, /partial_rotary_factor 0.4.*an even number of the 8 dimensions/],
    [{ partial_rotary_factor: 0.1 }, /partial_rotary_factor 0.1/],
    [{ partial_rotary_factor: 1.5 }, /partial_rotary_factor 1.5/],
    [{ partial_rotary_factor: '0.5' }, /partial_rotary_factor "0.5"/],
    [{ hidden_act: 'gelu' }, /hidden_act.*gelu.*supported: silu/],
    [{ sliding_window: 0 }, /sliding_window must be/],
    [{ model_type: 'phi3small' }, /phi3small.*expected "phi3"/],
  ])('refuses %j of phi3 by name', (change, message) => {
    expect(() => readDecoderSpec({ ...phi3, ...change })).toThrow(InvalidInputError);
    expect(() => readDecoderSpec({ ...phi3, ...change })).toThrow(message);
  });

  it.each([
    [
      { architectures: ['GemmaForCausalLM'] },
      /GemmaForCausalLM.*supported: LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, MistralForCausalLM/,
    ],
    [{ architectures: ['Qwen2ForSequenceClassification'] }, /Qwen2ForSequenceClassification.*supported/],
    [{ model_type: 'mistral' }, /mistral/],
    [{ architectures: ['LlamaForCausalLM', 'Qwen2ForCausalLM'] }, /must name one class/],
    [
      { rope_scaling: { rope_type: 'linear', type: 'llama3', factor: 2 } },
      /rope_type is "linear", but type is "llama3": remove the wrong one/,
    ],
    [{ rope_theta: 1e4, rope_parameters: { rope_theta: 5e5 } }, /rope_theta is 10000, but rope_theta of the rope/],
    [
      { rope_scaling: { type: 'linear', factor: 2 }, rope_parameters: { type: 'linear', factor: 4 } },
      /rope_scaling.factor is 2, but rope_parameters.factor is 4/,
    ],
    [
      {
        ...mistral,
        sliding_window: null,
        layer_types: [
          'sliding_attention',
          ...Array.from({ length: llama.num_hidden_layers - 1 }, () => 'full_attention'),
        ],
      },
      /names sliding_attention, but sliding_window is null/,
    ],
    [{ hidden_act: 'gelu' }, /gelu.*supported: silu/],
    [{ torch_dtype: 'float8_e4m3fn' }, /float8_e4m3fn.*supported: float32, bfloat16, float16/],
    [{ rope_scaling: { rope_type: 'yarn', factor: 2 } }, /yarn.*supported: default, linear, llama3/],
    [{ rope_scaling: { type: 'linear' } }, /factor.*found nothing/],
    [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor 0.5 is not supported; supported: 1/],
    [{ quantization_config: { bits: 4 } }, /quanti[sz]/],
    [{ hidden_size: '32' }, /hidden_size must be an integer from 1 to 1048576, found "32"/],
    [{ num_hidden_layers: 2147483648 }, /num_hidden_layers must be an integer from 1 to 10000, found 2147483648/],
    [{ num_attention_heads: 65536, head_dim: 65536 }, /num_attention_heads 65536 times head_dim 65536 is 4294967296/],
    [{ num_hidden_layers: -1 }, /num_hidden_layers/],
    [{ num_key_value_heads: 3 }, /multiple of num_key_value_heads 3/],
    [{ layer_types: ['full_attention'] }, /layer_types/],
  ])('refuses %j by name', (change, message) => {
    expect(() => readDecoderSpec({ ...llama, ...change })).toThrow(InvalidInputError);
    expect(() => readDecoderSpec({ ...llama, ...change })).toThrow(message);
  });

  it('returns a config or InvalidInputError for any JSON (property)', () => {
    const mutated = fc.dictionary(
      fc.constantFrom(...Object.keys(qwen3), 'rope_scaling', 'layer_types', 'sliding_window'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(mutated, (change) => {
        try {
          readDecoderSpec({ ...qwen3, ...change });
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('the tensors of a decoder', () => {
  it('are sorted, and tied models have no output head', () => {
    const names = namesOf({ ...qwen3, tie_word_embeddings: true });
    expect(names).toEqual([...names].sort());
    expect(names).not.toContain('lm_head.weight');
    expect(names).toContain('model.layers.1.self_attn.q_norm.weight');
    const bias = readDecoderSpec(qwen2).tensors.find(({ name }) => name.endsWith('0.self_attn.k_proj.bias'));
    expect(bias?.shape).toEqual([16]);
    expect(namesOf(llama)).toContain('lm_head.weight');
  });

  it('of phi3 are one for q, k and v and one for gate and up', () => {
    const { tensors } = readDecoderSpec({ ...phi3, num_hidden_layers: 1, num_key_value_heads: 3, head_dim: 24 });
    expect(tensors).toEqual([
      { name: 'lm_head.weight', shape: [96, 48] },
      { name: 'model.embed_tokens.weight', shape: [96, 48] },
      { name: 'model.layers.0.input_layernorm.weight', shape: [48] },
      { name: 'model.layers.0.mlp.down_proj.weight', shape: [48, 37] },
      { name: 'model.layers.0.mlp.gate_up_proj.weight', shape: [74, 48] },
      { name: 'model.layers.0.post_attention_layernorm.weight', shape: [48] },
      { name: 'model.layers.0.self_attn.o_proj.weight', shape: [48, 144] },
      { name: 'model.layers.0.self_attn.qkv_proj.weight', shape: [(6 + 2 * 3) * 24, 48] },
      { name: 'model.norm.weight', shape: [48] },
    ]);
  });
});

function mixerOf(config: object): GqaSpec {
  return at(readDecoderSpec(config).layers, 0).mixer;
}

function windowsOf(config: object): number[] {
  return readDecoderSpec(config).layers.map(({ mixer }) => mixer.window);
}

function namesOf(config: object): string[] {
  return readDecoderSpec(config).tensors.map(({ name }) => name);
}

/** Layers of the first block that have a bias. */
function biasesOf(config: object): string[] {
  const prefix = 'model.layers.0.';
  return namesOf(config)
    .filter((name) => name.startsWith(prefix) && name.endsWith('.bias'))
    .map((name) => name.slice(prefix.length, -'.bias'.length));
}
