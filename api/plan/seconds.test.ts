import { describe, expect, it } from 'vitest';
import { parseRecipe } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { readDecoderShape } from '../../models/decoder-shape.ts';
import { publishedModels } from '../../models/published-configs.test-support.ts';
import { parseMachine } from '../memory/cards.ts';
import { flopsPerToken, stageSeconds } from './seconds.ts';

const shapeOf = (name: string) => readDecoderShape(publishedModels[name]?.config ?? {});
const machine = parseMachine('1xH100');

const recipe = (more: Tree = {}) =>
  parseRecipe({
    name: 'timed',
    model: { path: './model' },
    data: { train_files: 'rows.jsonl', train_batch_size: 64, max_prompt_length: 1024, max_response_length: 1024 },
    reward: { scorer: 'last_integer' },
    ...more,
    actor: { ppo_mini_batch_size: 64, ...(more['actor'] as Tree | undefined) },
    rollout: { name: 'vllm', n: 4, ...(more['rollout'] as Tree | undefined) },
    trainer: { engine: 'torch', ...(more['trainer'] as Tree | undefined) },
  });
const stages = (more: Tree = {}, name = 'Qwen2.5-7B') =>
  new Map(
    (stageSeconds(recipe(more), shapeOf(name), machine, 'bf16') ?? []).map(
      ({ stage, ...rest }) => [stage, rest] as const,
    ),
  );

describe('seconds of the stages', () => {
  it('of an update are 6 N operations for each token, and attention’s, at 15 to 24 % of the peak', () => {
    // All but the embedding: 7.62 - 0.54 billion.
    const forward = 2 * (7_615_616_512 - 152_064 * 3584) + 2 * 2048 * 28 * 2 * 3584;
    expect(flopsPerToken(shapeOf('Qwen2.5-7B'), 2048)).toBe(forward);
    const tokens = 64 * 4 * 2048;
    const { fewest = 0, most = 0 } = stages().get('update') ?? {};
    expect(fewest).toBeCloseTo((3 * forward * tokens) / (0.24 * 989e12), 6);
    expect(most).toBeCloseTo((3 * forward * tokens) / (0.15 * 989e12), 6);
  });

  it('do not grow with the pack, except where layers keep an attention of their own', () => {
    const update = (name: string, tokens: number) =>
      stages({ actor: { ppo_max_token_len_per_gpu: tokens } }, name).get('update')?.most ?? 0;
    expect(update('Qwen2.5-7B', 16_384)).toBe(update('Qwen2.5-7B', 4096));
    // Scores of gemma 2 are capped.
    const widths = 42 * 2 * 16 * 256;
    const more = (3 * 64 * 4 * 2048 * 2 * (16_384 - 4096) * widths) / (0.15 * 989e12);
    expect(update('gemma-2-9b', 16_384) - update('gemma-2-9b', 4096)).toBeCloseTo(more, 6);
    const chunked = readDecoderShape({ ...publishedModels['Qwen2.5-7B']?.config, layer_types: ['chunked_attention'] });
    expect(flopsPerToken(chunked, 2048, 16_384)).toBe(flopsPerToken(shapeOf('Qwen2.5-7B'), 16_384));
  });

  it('of decoding are the bytes of the weights and of half-grown samples, once for each token', () => {
    const { fewest = 0 } = stages().get('rollout') ?? {};
    const weights = 2 * (7_615_616_512 - 152_064 * 3584);
    const cache = 2 * 256 * (1024 + 512) * 28 * 2 * 512;
    const prompts = (64 * 1024 * flopsPerToken(shapeOf('Qwen2.5-7B'), 1024)) / (0.24 * 989e12);
    expect(fewest).toBeCloseTo((1024 * (weights + cache)) / 3_350e9 + prompts, 6);
  });

  it('of decoding are divided by the cards, each of which samples', () => {
    const on = (machine: string) =>
      stageSeconds(recipe(), shapeOf('Qwen2.5-7B'), parseMachine(machine), 'bf16')?.find(
        ({ stage }) => stage === 'rollout',
      )?.fewest ?? 0;
    // Every card reads the weights for each token: what is divided are the caches and the prompts.
    const weights = (1024 * 2 * (7_615_616_512 - 152_064 * 3584)) / 3_350e9;
    expect(on('8xH100') - weights).toBeCloseTo((on('1xH100') - weights) / 8, 6);
  });

  it('are divided by the ranks, and have the stages that the recipe asks for', () => {
    expect([...stages().keys()]).toEqual(['rollout', 'update']);
    expect(stages({ trainer: { fsdp_size: 8 } }).get('update')?.most).toBeCloseTo(
      (stages().get('update')?.most ?? 0) / 8,
    );
    expect([...stages({ actor: { ppo_mini_batch_size: 32, use_kl_loss: true } }).keys()]).toEqual([
      'rollout',
      'old log-probs',
      'reference',
      'update',
    ]);
    expect([...stages({ algorithm: { adv_estimator: 'gae' } }).keys()]).toContain('critic update');
  });

  it('have no rollout where a server samples: rollout.url', () => {
    expect([...stages({ rollout: { url: 'http://10.0.0.7:8000' } }).keys()]).toEqual(['update']);
  });

  it('of a mixture are those of the experts that a token meets', () => {
    expect(flopsPerToken(shapeOf('Qwen3-30B-A3B'), 0)).toBeLessThan(0.2 * 2 * 30.5e9);
    // One sample meets 8 of 128 experts in a step, many samples nearly all.
    const one = stages({ rollout: { max_num_seqs: 1 } }, 'Qwen3-30B-A3B').get('rollout')?.fewest ?? 0;
    const many = stages({ rollout: { max_num_seqs: 256 } }, 'Qwen3-30B-A3B').get('rollout')?.fewest ?? 0;
    expect(one).toBeGreaterThan(4 * many);
  });

  it('are unknown for a card of which only the memory is stated', () => {
    expect(stageSeconds(recipe(), shapeOf('Qwen2.5-7B'), parseMachine('8x80GiB'), 'bf16')).toBeUndefined();
  });
});
