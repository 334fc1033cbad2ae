import { describe, expect, it } from 'vitest';
import { mergeTrees } from './merge.ts';
import type { Tree } from './merge.ts';
import { parseRecipe } from './parse.ts';
import { limitFor, tokensOfPass } from './pass.ts';
import { runIssues } from './runnable.ts';

const recipe = (more: Tree) =>
  parseRecipe(
    mergeTrees(
      {
        model: { path: './m' },
        data: { train_files: 'rows.jsonl', train_batch_size: 8, max_prompt_length: 100, max_response_length: 900 },
        actor: { ppo_mini_batch_size: 8 },
        rollout: { n: 4 },
        trainer: { engine: 'torch', fsdp_size: 8 },
      },
      more,
    ),
  );
const issues = (more: Tree) => runIssues(recipe(more)).map(({ path, hint }) => `${path}: ${hint}`);
const sizes = (ulysses: number, tensor: number, expert: number): Tree => ({
  trainer: {
    ulysses_sequence_parallel_size: ulysses,
    tensor_model_parallel_size: tensor,
    expert_model_parallel_size: expert,
  },
});

describe('processes that share a model', () => {
  it.each([
    [1, 1, 1],
    [8, 1, 1],
    [2, 4, 1],
    [1, 2, 4],
    [2, 2, 8],
  ])('may share it by %i, %i and %i', (...given) => {
    expect(issues(sizes(...given))).toEqual([]);
  });

  it.each([
    [[3, 1, 1], 'trainer.ulysses_sequence_parallel_size: use trainer.ulysses_sequence_parallel_size=2 or 4'],
    [[4, 4, 1], 'trainer.ulysses_sequence_parallel_size: use trainer.ulysses_sequence_parallel_size=2'],
    [[1, 16, 1], 'trainer.tensor_model_parallel_size: use trainer.tensor_model_parallel_size=8'],
    [[1, 1, 5], 'trainer.expert_model_parallel_size: use trainer.expert_model_parallel_size=2'],
    [[1, 4, 3], 'trainer.expert_model_parallel_size: use trainer.expert_model_parallel_size=4'],
    [[1, 4, 2], 'trainer.expert_model_parallel_size: use trainer.expert_model_parallel_size=4'],
  ] as const)('may not by %o', ([ulysses, tensor, expert], text) => {
    expect(issues(sizes(ulysses, tensor, expert))).toEqual([text]);
  });

  it('are told of their number where it was forgotten', () => {
    const trainer = { fsdp_size: 1 };
    expect(issues(mergeTrees(sizes(4, 1, 1), { trainer }))).toEqual(['trainer.fsdp_size: use trainer.fsdp_size=4']);
    expect(issues(mergeTrees(sizes(2, 1, 3), { trainer }))).toEqual(['trainer.fsdp_size: use trainer.fsdp_size=6']);
  });

  it('share no layers with an adapter, but their tokens', () => {
    const adapter = { model: { lora_rank: 8, lora_alpha: 16 }, rollout: { name: 'hf' }, deterministic: false };
    expect(issues(mergeTrees(sizes(2, 1, 1), adapter))).toEqual([]);
    expect(issues(mergeTrees(sizes(1, 2, 1), adapter))).toEqual([
      'trainer.tensor_model_parallel_size: trainer.fsdp_size divides its weights, ' +
        'trainer.ulysses_sequence_parallel_size its tokens',
    ]);
  });

  it('keep a state in bf16 beside products in bf16 only', () => {
    const narrow = { trainer: { state_dtype: 'bf16' } };
    expect(issues(narrow)).toEqual(['trainer.state_dtype: set model.compute_dtype=bf16 too']);
    const products = { model: { compute_dtype: 'bf16' } };
    expect(issues(mergeTrees(narrow, products))).toEqual([]);
    const native = { trainer: { engine: 'native', fsdp_size: 1 } };
    expect(runIssues(recipe(mergeTrees(mergeTrees(narrow, products), native))).map(({ path }) => path)).toEqual([
      'trainer.state_dtype',
    ]);
  });

  it('are not those of the native engine', () => {
    const native = { trainer: { engine: 'native', fsdp_size: 1 } };
    expect(runIssues(recipe(mergeTrees(sizes(2, 1, 1), native))).map(({ path }) => path)).toEqual([
      'trainer.ulysses_sequence_parallel_size',
    ]);
  });

  it('take together the tokens of a sequence that none could take alone', () => {
    const short = { actor: { ppo_max_token_len_per_gpu: 400 } };
    expect(issues(mergeTrees(sizes(4, 1, 1), short))).toEqual([]);
    expect(issues(mergeTrees(sizes(2, 1, 1), short))).toEqual([
      'actor.ppo_max_token_len_per_gpu: use actor.ppo_max_token_len_per_gpu=500 or more, or shorter sequences',
    ]);
    const divided = recipe(mergeTrees(sizes(4, 1, 1), short));
    expect([tokensOfPass(divided), tokensOfPass(divided, 10), limitFor(1001, divided)]).toEqual([1600, 40, 251]);
  });
});
