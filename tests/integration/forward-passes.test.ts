// @module-tag long
/**
 * How work is divided changes how long it takes and how much memory it needs, and never what is learnt: jobs of
 * rollouts change no bit, and forward passes change the order of sums only.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { runIssues } from '../../core/recipe/index.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { recipeWith } from '../algorithm-recipes.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const loop = new InProcessLoop();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

const batchOf = async ({ log, iterations }: RunInProcess, k: number): Promise<BatchTensors> => {
  const digest = iterations[k]?.batch.tensors ?? '';
  return decodeBatch(await getBlob(loop.store, log.runId, digest), digest);
};
const passesOf = ({ microOffsets_M1: offsets, microSamples }: BatchTensors): number[][] =>
  Array.from({ length: offsets.length - 1 }, (_, m) => [...microSamples.subarray(offsets[m], offsets[m + 1])]);
/** What the models and the estimator said of each sample. */
const said = ({ oldLogProbs_T, refLogProbs_T, values_T, advantages_T }: BatchTensors) => ({
  oldLogProbs_T,
  refLogProbs_T,
  values_T,
  advantages_T,
});
const gradNorms = ({ iterations }: RunInProcess) => iterations.map(({ update }) => update.metrics['actor/grad_norm']);

const base: Tree = { algorithm: { adv_estimator: 'gae' }, actor: { use_kl_loss: true } };
const withActor = (actor: Tree, more: Tree = {}): Tree => ({
  ...base,
  ...more,
  actor: { use_kl_loss: true, ...actor },
});

describe('a deterministic run', () => {
  it('has the same bits whatever the number of jobs that sample and score', async () => {
    const runs = [];
    for (const max_num_seqs of [4, 8, 16])
      runs.push(await loop.completed({ ...base, rollout: { n: 4, max_num_seqs } }));
    const jobs = runs.map(({ iterations }) => iterations[0]?.batch.results.length);
    expect(new Set(jobs).size).toBe(3);
    expect(new Set(runs.map(({ weights }) => weights.join())).size).toBe(1);
  });

  it('has the same bits in its batch whatever its forward passes, and the same update up to rounding', async () => {
    const ways: readonly Tree[] = [
      { ppo_max_token_len_per_gpu: 16 },
      { ppo_max_token_len_per_gpu: 40 },
      { ppo_max_token_len_per_gpu: 400 },
      { ppo_max_token_len_per_gpu: 40, use_prefix_grouper: false },
      { use_dynamic_bsz: false, ppo_micro_batch_size_per_gpu: 3 },
      { use_dynamic_bsz: false, ppo_micro_batch_size_per_gpu: 1 },
    ];
    const runs = [];
    for (const actor of ways) runs.push(await loop.completed(withActor(actor)));
    const first = await Promise.all(runs.map((run) => batchOf(run, 0)));
    expect(new Set(first.map((batch) => passesOf(batch).length)).size).toBeGreaterThan(3);
    for (const batch of first) expect(said(batch)).toEqual(said(first[0] as BatchTensors));
    for (const run of runs)
      for (const [k, norm] of gradNorms(run).entries())
        expect(Math.abs(Number(norm) / Number(gradNorms(runs[0] as RunInProcess)[k]) - 1)).toBeLessThan(1e-5);
  });
});

describe('actor.use_dynamic_bsz: false', () => {
  it('gives each forward pass so many sequences, and never more tokens than the limit', async () => {
    const fixed = { use_dynamic_bsz: false, ppo_micro_batch_size_per_gpu: 3 };
    const wide = passesOf(
      await batchOf(await loop.completed(withActor({ ...fixed, ppo_max_token_len_per_gpu: 400 })), 0),
    );
    // Two steps of 8 samples.
    expect(wide.map((pass) => pass.length)).toEqual([3, 3, 2, 3, 3, 2]);
    const narrow = passesOf(
      await batchOf(await loop.completed(withActor({ ...fixed, ppo_max_token_len_per_gpu: 16 })), 0),
    );
    expect(narrow.length).toBeGreaterThan(wide.length);
    expect(narrow.every((pass) => pass.length <= 3)).toBe(true);
  });

  it.each([
    [{ use_dynamic_bsz: false }, /a forward pass has a given number of sequences/],
    [{ ppo_micro_batch_size_per_gpu: 4 }, /only tokens are counted, so this number would have no effect/],
    [
      { use_dynamic_bsz: false, ppo_micro_batch_size_per_gpu: 3, policy_loss: { loss_mode: 'gvpo' } },
      /gvpo reads 4 responses to a prompt in one forward pass/,
    ],
  ])('%j is refused', (actor, message) => {
    const issues = runIssues(recipeWith({ rollout: { n: 4 }, actor }));
    expect(issues).toMatchObject([
      { path: 'actor.ppo_micro_batch_size_per_gpu', message: expect.stringMatching(message), hint: expect.any(String) },
    ]);
  });
});

describe('ref.log_prob_max_token_len_per_gpu', () => {
  it('changes no bit of what the reference says', async () => {
    const usual = await loop.completed(base);
    const small = await loop.completed({ ...base, ref: { log_prob_max_token_len_per_gpu: 14 } });
    expect((await batchOf(usual, 0)).refLogProbs_T).toBeDefined();
    expect((await batchOf(small, 1)).refLogProbs_T).toEqual((await batchOf(usual, 1)).refLogProbs_T);
    expect(small.weights).toEqual(usual.weights);
  });

  it('is refused where a sequence may be longer', () => {
    const issues = runIssues(recipeWith({ rollout: { n: 4 }, ref: { log_prob_max_token_len_per_gpu: 100 } }));
    expect(issues.map(({ path }) => path)).toEqual(['ref.log_prob_max_token_len_per_gpu']);
  });
});

describe('actor.calculate_entropy', () => {
  it('reports the entropy of every step, and changes no weight', async () => {
    const without = await loop.completed({});
    const reported = await loop.completed({ actor: { calculate_entropy: true } });
    expect(without.iterations[0]?.update.metrics).not.toHaveProperty(['actor/entropy_loss']);
    expect(reported.iterations[0]?.update.metrics['actor/entropy_loss']).toBeGreaterThan(0);
    expect(reported.weights).toEqual(without.weights);
  });
});
