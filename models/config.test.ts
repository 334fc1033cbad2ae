import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../core/errors.ts';
import { expectedTensors, readDecoderConfig } from './config.ts';

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
const llama3Rope = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

describe('readDecoderConfig', () => {
  it('reads the keys of transformers 4 and 5 to the same config', () => {
    const v4 = { ...llama, rope_theta: 5e5, rope_scaling: llama3Rope };
    const { torch_dtype: dtype, ...rest } = llama;
    const v5 = { ...rest, dtype, rope_parameters: { ...llama3Rope, rope_theta: 5e5 } };
    expect(readDecoderConfig(v5)).toEqual(readDecoderConfig(v4));
    const nested = { ...rest, dtype, rope_parameters: { full_attention: { ...llama3Rope, rope_theta: 5e5 } } };
    expect(readDecoderConfig(nested)).toEqual(readDecoderConfig(v4));
  });

  it('uses the defaults of each family', () => {
    expect(readDecoderConfig(llama)).toMatchObject({
      family: 'llama',
      headDim: 8,
      tied: false,
      qkvBias: false,
      outBias: false,
      mlpBias: false,
      qkNorm: false,
    });
    expect(readDecoderConfig(qwen2)).toMatchObject({
      family: 'qwen2',
      qkvBias: true,
      outBias: false,
      qkNorm: false,
      windows: [0, 0],
    });
    expect(readDecoderConfig(qwen3)).toMatchObject({ family: 'qwen3', headDim: 16, qkvBias: false, qkNorm: true });
    const { head_dim: _, ...plain } = qwen3;
    expect(readDecoderConfig(plain).headDim).toBe(128);
    expect(readDecoderConfig({ ...plain, head_dim: null }).headDim).toBe(8);
  });

  it('puts biases where each family has them', () => {
    expect(readDecoderConfig({ ...llama, attention_bias: true, mlp_bias: true })).toMatchObject({
      qkvBias: true,
      outBias: true,
      mlpBias: true,
    });
    expect(readDecoderConfig({ ...qwen2, attention_bias: true })).toMatchObject({ qkvBias: true, outBias: false });
    expect(readDecoderConfig({ ...qwen3, attention_bias: true })).toMatchObject({ qkvBias: true, outBias: true });
  });

  it('gives a window only to layers with sliding attention', () => {
    const window = { use_sliding_window: true, sliding_window: 4, max_window_layers: 1 };
    expect(readDecoderConfig({ ...qwen2, ...window }).windows).toEqual([0, 4]);
    expect(readDecoderConfig({ ...qwen2, ...window, use_sliding_window: false }).windows).toEqual([0, 0]);
    expect(
      readDecoderConfig({ ...qwen2, ...window, layer_types: ['sliding_attention', 'full_attention'] }).windows,
    ).toEqual([4, 0]);
    expect(readDecoderConfig({ ...llama, sliding_window: 4 }).windows).toEqual([0, 0]);
  });

  it('computes plain, linear and llama3 rope', () => {
    const plain = readDecoderConfig({ ...llama, rope_scaling: null }).ropeInvFreq;
    expect(plain).toEqual([1, 0.1, 0.01, 0.001].map((x) => expect.closeTo(x, 15)));
    const linear = readDecoderConfig({ ...llama, rope_scaling: { type: 'linear', factor: 4 } }).ropeInvFreq;
    expect(linear).toEqual(plain.map((x) => x / 4));
    const scaled = readDecoderConfig({ ...llama, rope_scaling: llama3Rope }).ropeInvFreq;
    expect(scaled[0]).toBe(1);
    expect(scaled[3]).toBe((plain[3] as number) / 8);
    const smooth = (64 / ((2 * Math.PI) / 0.1) - 1) / 3;
    expect(scaled[1]).toBeCloseTo(((1 - smooth) * 0.1) / 8 + smooth * 0.1, 14);
  });

  it.each([
    [
      { architectures: ['GemmaForCausalLM'] },
      /GemmaForCausalLM.*supported: LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM/,
    ],
    [{ architectures: ['Qwen2ForSequenceClassification'] }, /Qwen2ForSequenceClassification.*supported/],
    [{ model_type: 'mistral' }, /mistral/],
    [{ hidden_act: 'gelu' }, /gelu.*supported: silu/],
    [{ torch_dtype: 'float8_e4m3fn' }, /float8_e4m3fn.*supported: float32, bfloat16, float16/],
    [{ rope_scaling: { rope_type: 'yarn', factor: 2 } }, /yarn.*supported: default, linear, llama3/],
    [{ rope_scaling: { type: 'linear' } }, /factor.*found nothing/],
    [{ quantization_config: { bits: 4 } }, /quanti[sz]/],
    [{ hidden_size: '32' }, /hidden_size must be an integer from 1 to 1048576, found "32"/],
    [{ num_hidden_layers: 2147483648 }, /num_hidden_layers must be an integer from 1 to 10000, found 2147483648/],
    [{ num_attention_heads: 65536, head_dim: 65536 }, /num_attention_heads 65536 times head_dim 65536 is 4294967296/],
    [{ num_hidden_layers: -1 }, /num_hidden_layers/],
    [{ num_key_value_heads: 3 }, /multiple of num_key_value_heads 3/],
    [{ layer_types: ['full_attention'] }, /layer_types/],
  ])('refuses %j by name', (change, message) => {
    expect(() => readDecoderConfig({ ...llama, ...change })).toThrow(InvalidInputError);
    expect(() => readDecoderConfig({ ...llama, ...change })).toThrow(message);
  });

  it('returns a config or InvalidInputError for any JSON (property)', () => {
    const mutated = fc.dictionary(
      fc.constantFrom(...Object.keys(qwen3), 'rope_scaling', 'layer_types', 'sliding_window'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(mutated, (change) => {
        try {
          readDecoderConfig({ ...qwen3, ...change });
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('expectedTensors', () => {
  it('is sorted, and tied models have no output head', () => {
    const names = expectedTensors(readDecoderConfig({ ...qwen3, tie_word_embeddings: true })).map(
      (tensor) => tensor.name,
    );
    expect(names).toEqual([...names].sort());
    expect(names).not.toContain('lm_head.weight');
    expect(names).toContain('model.layers.1.self_attn.q_norm.weight');
    expect(
      expectedTensors(readDecoderConfig(qwen2)).find((tensor) => tensor.name.endsWith('0.self_attn.k_proj.bias'))
        ?.shape,
    ).toEqual([16]);
    expect(expectedTensors(readDecoderConfig(llama)).map((tensor) => tensor.name)).toContain('lm_head.weight');
  });
});
