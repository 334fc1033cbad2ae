/**
 * A sample does not depend on who made it: the trainer's own policy, an engine with its fp32 values, and one with its
 * publication in bf16 give the same tokens and log-probs, bit by bit.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { forwardOne } from '../../../core/ports/one-lane.ts';
import type { DecoderSpec } from '../../../native/model/spec.ts';
import { stateParts } from '../../../core/records/state-parts.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import { publishedBytes } from '../../../core/records/publications.ts';
import { readDecoderSpec } from '../../../native/model/config.ts';
import { generate, randomNumbers, randomPrompt, randomShape, request } from '../../../native/testing/generation.ts';
import { createGenerator, engineInfo } from '../../../native/index.ts';
import { batchOf, decoder, trainerOf } from '../../../native/testing/decoders.ts';
import { NativePolicy } from '../engines/native/policy.ts';
import { publicationRoot } from '../engines/roots.ts';
import { RunState } from '../state/state.ts';

const sizes = {
  hidden_size: 40,
  intermediate_size: 72,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 101,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  hidden_act: 'silu',
};
const gemma = { query_pre_attn_scalar: 16, sliding_window: 16, hidden_activation: 'gelu_pytorch_tanh', head_dim: 10 };
const families: readonly (readonly [string, DecoderSpec])[] = [
  ['llama', { model_type: 'llama', ...sizes }],
  ['llama, tied', { model_type: 'llama', tie_word_embeddings: true, ...sizes }],
  ['qwen2', { model_type: 'qwen2', tie_word_embeddings: true, ...sizes }],
  ['qwen3', { model_type: 'qwen3', head_dim: 10, ...sizes }],
  ['mistral', { model_type: 'mistral', sliding_window: 16, ...sizes }],
  ['phi3', { model_type: 'phi3', ...sizes }],
  [
    'gemma2',
    {
      model_type: 'gemma2',
      ...gemma,
      attn_logit_softcapping: 50,
      final_logit_softcapping: 30,
      tie_word_embeddings: true,
      ...sizes,
    },
  ],
].map(([name, config]) => [name as string, readDecoderSpec(config)]);
const shapes = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => {
  const shape = randomShape(randomNumbers(seed));
  return [`random sizes${shape.tied ? ', tied' : ''}`, seed, decoder(shape)] as const;
});
const cases = [...families.map(([name, spec], i) => [name, 20 + i, spec] as const), ...shapes];

const open: NativePolicy[] = [];
afterEach(async () => {
  for (const policy of open.splice(0)) await policy.close();
});

function policyOf(spec: DecoderSpec, seed: number, trainable: boolean): NativePolicy {
  const policy = new NativePolicy(trainerOf(spec, seed, { compute: 'bf16', trainable, threads: 2 }));
  open.push(policy);
  return policy;
}

/** One step, so that the values are those of training; some are denormal, some between two bf16 values. */
async function learn(policy: NativePolicy, seed: number): Promise<void> {
  const { trainer } = policy;
  const odd = Float32Array.of(1e-40, -1e-39, 1.17e-38, 1 + 2 ** -8, -1 - 3 * 2 ** -9);
  for (const { offset, size } of trainer.parameters)
    trainer.write('weights', odd.subarray(0, Math.min(size, odd.length)), offset);
  trainer.weightsChanged();
  const batch = batchOf(trainer.spec, [9, 14], seed);
  const { handle } = await forwardOne(policy, batch, { temperature: 1, wants: ['logProbs'], keep: true });
  await policy.backward([{ handle, gradients: { logProbs: new Float32Array(batch.positions_P.length).fill(-0.1) } }]);
  await policy.step({ lr: 1e-4, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 });
}

/** Everything that a sampler makes of its weights. */
async function samplesOf(policy: NativePolicy, seed: number): Promise<readonly number[]> {
  const { trainer } = policy;
  const { vocab } = trainer.spec;
  const random = randomNumbers(seed);
  const generator = createGenerator(trainer, { maxSeqs: 6, maxModelLen: 64, kvPages: 40 });
  const prompts = [1, 11, 21].map((key) => request(randomPrompt(random, vocab, 20), key, 3));
  const responses = [...generate(generator, prompts).values()];
  generator.close();
  const batch = batchOf(trainer.spec, [17, 1, 6], seed);
  const { outputs } = await forwardOne(policy, batch, {
    temperature: 0.8,
    wants: ['logProbs', 'entropy'],
    keep: false,
  });
  return [
    ...responses.flatMap(({ tokens, logProbs, samplingLogProbs }) => [...tokens, ...logProbs, ...samplingLogProbs]),
    ...outputs.logProbs,
    ...outputs.entropy,
  ];
}

async function load(policy: PolicyEngine, from: PolicyEngine, format: 'F32' | 'BF16'): Promise<void> {
  const bytes = new Uint8Array(publishedBytes(from.parameters, format));
  await from.readPublished(format, 0, bytes);
  await policy.load({
    type: 'published',
    format,
    read: async (sinkOf) => sinkOf(0, bytes.length)(bytes),
  });
}

it.skipIf(!engineInfo().bf16)(
  'a trainer that has got the state of another one names the same publications (skipped: needs AVX512_BF16; seed 31)',
  async () => {
    const spec = decoder(randomShape(randomNumbers(31)));
    const [first, second] = [policyOf(spec, 31, true), policyOf(spec, 32, true)];
    const stateOf = (actor: PolicyEngine) => new RunState({ actor }, 'a'.repeat(64), 'blake3', 'BF16');
    await learn(first, 31);
    const made = await stateOf(first).seal();
    const restored = await stateOf(second).load(
      () => ({
        type: 'pieces',
        steps: first.steps,
        read: async (sinkOf) => {
          for (const part of stateParts) {
            const sink = sinkOf({ part, start: 0, end: first.elements });
            await sink(new Uint8Array(first.trainer.read(part).buffer));
          }
        },
      }),
      {},
      {},
    );
    expect(restored).toEqual(made);
    expect(made.publication).toEqual({ format: 'BF16', digest: await publicationRoot(first, 'BF16', 'blake3') });
    expect(made.publication?.digest).not.toBe(made.weightsDigest);
  },
);

describe.skipIf(!engineInfo().bf16)('samples in bf16 (skipped: needs AVX512_BF16)', () => {
  it.each(cases)('are the same from every publication: %s (seed %i)', async (_, seed, spec) => {
    const trainer = policyOf(spec, seed, true);
    await learn(trainer, seed);
    const expected = await samplesOf(trainer, seed);
    expect(expected.every(Number.isFinite)).toBe(true);
    for (const format of ['F32', 'BF16'] as const) {
      const sampler = policyOf(spec, seed + 1, false);
      await load(sampler, trainer, format);
      expect(await samplesOf(sampler, seed), format).toEqual(expected);
      if (format === 'F32') continue;
      // A sampler that has rounded values gives the same ones to the next.
      const next = policyOf(spec, seed + 2, false);
      await load(next, sampler, format);
      expect(await next.publishedDigests(1 << 20)).toEqual(await trainer.publishedDigests(1 << 20));
    }
  });
});
