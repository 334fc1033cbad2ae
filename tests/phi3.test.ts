/**
 * phi3 against mistral: the same decoder, with q, k, v in one tensor and gate, up in another. The engine must give the
 * same bits. A rope of the leading dimensions is compared with a whole rope, some of whose frequencies are 0.
 */
import { describe, expect, it } from 'vitest';
import { at } from '../core/at.ts';
import type { DecoderSpec } from '../native/model/spec.ts';
import type { EngineOptions } from '../core/ports/policy.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { generate, request } from '../native/testing/generation.ts';
import { createGenerator, createTrainer, engineInfo } from '../native/index.ts';
import { batchOf, randomOf } from '../native/testing/decoders.ts';
import { largestDifference } from './score-texts.ts';

const [hidden, heads, kvHeads, headDim, ffn, window] = [29, 6, 3, 24, 37, 5];
const sizes = {
  hidden_size: hidden,
  num_hidden_layers: 1,
  num_attention_heads: heads,
  num_key_value_heads: kvHeads,
  head_dim: headDim,
  intermediate_size: ffn,
  vocab_size: 41,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-5,
  rope_theta: 100,
  sliding_window: window,
};
const mistral = readDecoderSpec({ ...sizes, model_type: 'mistral' });
const phi3 = readDecoderSpec({ ...sizes, model_type: 'phi3' });
const exact: EngineOptions = { compute: 'fp32', deterministic: true, threads: 2 };
const options = [
  exact,
  { ...exact, deterministic: false },
  { ...exact, compute: 'bf16' as const, deterministic: false },
];

type Weights = ReadonlyMap<string, Float32Array>;

describe('phi3', () => {
  it.each(options.filter(({ compute }) => compute === 'fp32' || engineInfo().bf16))(
    'gives the bits of mistral with the same weights in separate tensors: %j',
    (engine) => {
      const weights = randomWeights(mistral, 1);
      const separate = resultsOf(mistral, weights, engine);
      const whole = resultsOf(phi3, fused(weights), engine);
      expect(whole.logProbs).toEqual(separate.logProbs);
      expect(whole.entropy).toEqual(separate.entropy);
      expect(whole.greedy).toEqual(separate.greedy);
      expect(new Set(whole.greedy.tokens).size).toBeGreaterThan(2);
      expect(whole.gradients).toEqual(fused(separate.gradients));
    },
  );

  it('sees its window only', () => {
    const weights = fused(randomWeights(mistral, 1));
    const everything = readDecoderSpec({ ...sizes, model_type: 'phi3', sliding_window: null });
    const [narrow, wide] = [phi3, everything].map((spec) => resultsOf(spec, weights, exact).logProbs);
    expect(narrow?.slice(0, window)).toEqual(wide?.slice(0, window));
    expect(largestDifference(narrow ?? [], wide ?? [])).toBeGreaterThan(0.01);
  });

  it('turns the first 18 of 24 dimensions with partial_rotary_factor 0.75', () => {
    const partial = readDecoderSpec({ ...sizes, model_type: 'phi3', partial_rotary_factor: 0.75 });
    const weights = randomWeights(mistral, 2);
    const frequencies = at(partial.layers, 0).mixer.rope;
    expect(frequencies).toHaveLength(9);
    const padded = withRope(mistral, [...frequencies, 0, 0, 0]);
    const got = resultsOf(partial, fused(weights), exact);
    const want = resultsOf(padded, pairsApart(weights), exact);
    expect(largestDifference(got.logProbs, want.logProbs)).toBeLessThan(1e-5);
    expect(got.greedy.tokens).toEqual(want.greedy.tokens);
    const whole = resultsOf(phi3, fused(weights), exact);
    expect(largestDifference(got.logProbs, whole.logProbs)).toBeGreaterThan(0.01);
  });
});

/** Matrices are uniform in ±0.5, weights of norms in 1 ± 0.3. */
function randomWeights(spec: DecoderSpec, seed: number): Map<string, Float32Array> {
  const random = randomOf(seed);
  return new Map(
    spec.tensors.map(({ name, shape }) => {
      const [middle, width] = name.endsWith('norm.weight') ? [1, 0.6] : [0, 1];
      const size = shape.reduce((product, length) => product * length, 1);
      return [name, Float32Array.from({ length: size }, () => middle + width * (random() - 0.5))];
    }),
  );
}

/** The tensors of phi3: the rows of the separate ones, one below the other. */
function fused(separate: Weights): Map<string, Float32Array> {
  const rest = new Map(separate);
  const take = (name: string) => {
    const values = rest.get(name) ?? [];
    rest.delete(name);
    return [...values];
  };
  const below = (block: string, parts: readonly string[], whole: string) => {
    const rows = parts.flatMap((part) => take(`model.layers.0.${block}.${part}.weight`));
    rest.set(`model.layers.0.${block}.${whole}.weight`, Float32Array.from(rows));
  };
  below('self_attn', ['q_proj', 'k_proj', 'v_proj'], 'qkv_proj');
  below('mlp', ['gate_proj', 'up_proj'], 'gate_up_proj');
  return rest;
}

function withRope(spec: DecoderSpec, rope: readonly number[]): DecoderSpec {
  return { ...spec, layers: spec.layers.map((layer) => ({ ...layer, mixer: { ...layer.mixer, rope } })) };
}

/**
 * Dimensions i and i + 9 of a head, which turn as a pair when 18 dimensions turn, go to i and i + 12, which turn as a
 * pair when 24 do. The others take the places that are left.
 */
function pairsApart(weights: Weights): Map<string, Float32Array> {
  const from = (d: number) => (d < 9 ? d : d < 12 ? d + 9 : d < 21 ? d - 3 : d);
  const moved = (values: Float32Array) => {
    const source = (row: number) => row - (row % headDim) + from(row % headDim);
    return values.map((_, i) => at(values, source(Math.floor(i / hidden)) * hidden + (i % hidden)));
  };
  return new Map([...weights].map(([name, values]) => [name, /\.[qk]_proj\./.test(name) ? moved(values) : values]));
}

function resultsOf(spec: DecoderSpec, weights: Weights, engine: EngineOptions) {
  const trainer = createTrainer(spec, { ...engine, trainable: true });
  for (const { name, offset, size } of trainer.parameters) {
    const values = weights.get(name) ?? new Float32Array(0);
    expect(values.length, name).toBe(size);
    trainer.write('weights', values, offset);
  }
  trainer.weightsChanged();
  const batch = batchOf(spec, [19, 3, 33], 7);
  const wants = ['logProbs', 'entropy'] as const;
  const { handle, outputs } = trainer.forward(batch, { temperature: 0.9, wants, keep: true });
  trainer.backward(handle, { logProbs: outputs.logProbs.map((_, i) => (i % 5) - 2) });
  const gradients = new Map(
    trainer.parameters.map(({ name, offset, size }) => [name, trainer.read('grads', offset, new Float32Array(size))]),
  );
  const greedy = decodeGreedily(trainer, [...batch.tokens_N.subarray(0, 11)]);
  trainer.close();
  return { ...outputs, gradients, greedy };
}

function decodeGreedily(trainer: Parameters<typeof createGenerator>[0], prompt: readonly number[]) {
  const generator = createGenerator(trainer, { maxSeqs: 1, maxModelLen: 64 });
  const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
  const { tokens = [], logProbs = [] } =
    generate(generator, [request(prompt, 1, 1, { sampling, maxNewTokens: 30 })]).get(1) ?? {};
  generator.close();
  return { tokens, logProbs };
}
