/** Runs that learn pairs of given responses: `kind: dpo` and `kind: rm`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const loop = new InProcessLoop();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

const iterations = 6;
const recipeOf = (kind: 'dpo' | 'rm'): Tree => ({
  kind,
  data: { val_files: loop.inputs.validationPairs, train_batch_size: 6, max_length: 12 },
  actor: { ppo_max_token_len_per_gpu: 40, optim: { lr: 0.01, weight_decay: 0 } },
  // Only trainers: nobody samples.
  fleet: { pools: { train: { roles: ['trainer'], workers: 1 } } },
  trainer: { total_training_steps: iterations, save_freq: 2, test_freq: 3, val_before_train: true },
});

describe.each(['dpo', 'rm'] as const)('a run of kind %s (seed 42)', (kind) => {
  let run: RunInProcess;
  let made: RunInProcess['iterations'];
  beforeAll(async () => {
    run = await loop.completed(recipeOf(kind));
    made = run.iterations;
  });

  it('learns: the loss falls from log 2, and the chosen response is preferred more', () => {
    const of = (name: string) => made.map(({ update }) => Number(update.metrics[name]));
    expect(made).toHaveLength(iterations);
    expect(of('train/loss')[0]).toBeCloseTo(Math.LN2, 5);
    expect(of('train/loss').at(-1)).toBeLessThan(0.68);
    expect(of('rewards/margins').at(-1)).toBeGreaterThan(0.02);
    for (const { update } of made)
      expect(Number(update.metrics['rewards/margins'])).toBeCloseTo(
        Number(update.metrics['rewards/chosen']) - Number(update.metrics['rewards/rejected']),
        6,
      );
  });

  it('keeps the responses of a pair side by side in one micro-batch', async () => {
    for (const { batch } of made) {
      const tensors = decodeBatch(await getBlob(loop.store, run.log.runId, batch.tensors), 'batch');
      const micros = Array.from({ length: tensors.microOffsets_M1.length - 1 }, (_, m) => [
        ...tensors.microSamples.subarray(tensors.microOffsets_M1[m], tensors.microOffsets_M1[m + 1]),
      ]);
      expect(micros.length).toBeGreaterThan(1);
      for (const micro of micros)
        for (let i = 0; i < micro.length; i += 2)
          expect(micro.slice(i, i + 2)).toEqual([micro[i], (micro[i] ?? 0) + 1]);
      expect((tensors.refLogProbs_T !== undefined) === (kind === 'dpo')).toBe(true);
      expect(batch.draws.map(({ samples }) => samples)).toEqual(batch.draws.map((_, g) => [2 * g, 2 * g + 1]));
    }
  });

  it('validates on held-out pairs; at the start it prefers none', async () => {
    const found = await run.log.evaluations.all();
    expect(found.map(({ iteration }) => iteration)).toEqual([0, 3, 6]);
    expect(found[0]).toMatchObject({ accuracy: 0, questions: 10 });
    expect(found[2]?.accuracy).toBeGreaterThan(0.3);
  });
});
