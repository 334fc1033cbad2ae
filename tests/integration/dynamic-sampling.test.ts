/** Dynamic sampling: groups whose samples have one score are replaced by other prompts, in waves. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const recipe: Tree = {
  algorithm: { filter_groups: { enable: true, metric: 'acc' } },
  trainer: { total_training_steps: 4, save_freq: 2 },
};

const loop = new InProcessLoop(({ solutionStr }) => ({
  score: 2 * solutionStr.length,
  acc: solutionStr.includes('7'),
}));
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(recipe);
});
afterAll(() => loop.remove());

describe('a run with dynamic sampling (seed 42)', () => {
  it('trains on as many groups as the batch has, and each draw has an outcome', () => {
    expect(undisturbed.iterations.some(({ batch }) => batch.draws.some(({ wave }) => wave === 1))).toBe(true);
    for (const { batch } of undisturbed.iterations) {
      const numbers = batch.draws.map(({ draw }) => draw);
      expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => batch.before.cursor + i));
      expect(batch.after.cursor).toBe(batch.before.cursor + numbers.length);
      const outcomes = (fate: string) => batch.draws.filter((draw) => draw.fate === fate);
      expect(outcomes('trained')).toHaveLength(4);
      expect(batch.draws.map(({ wave = 0 }) => wave)).toEqual(numbers.map((_, i) => Math.floor(i / 4)));
      for (const { reason } of outcomes('filtered')) expect(reason).toMatch(/^all samples have the same acc, [01]$/);
      for (const { reason, samples } of outcomes('surplus'))
        expect([reason, ...samples]).toEqual(Array.from({ length: 5 }, () => 'the batch was full'));
      expect(batch.metrics).toMatchObject({
        'train/num_gen_batches': numbers.length / 4,
        'training/filtered_groups': outcomes('filtered').length,
        'training/surplus_groups': outcomes('surplus').length,
        'training/samples': 16,
      });
    }
  });

  it('says how many groups it lacks', () => {
    const line = undisturbed.said.find((one) => one.includes('sampling 4 other prompts'));
    expect(line).toMatch(/iteration \d: [0-3] of 4 groups have samples that differ in acc; sampling 4 other prompts$/);
  });

  it('samples waves of data.gen_batch_size prompts', async () => {
    const waves = { ...recipe, data: { gen_batch_size: 3 }, trainer: { total_training_steps: 2 } };
    for (const { batch } of (await loop.completed(waves)).iterations) {
      expect(batch.draws.length % 3).toBe(0);
      expect(batch.draws.filter(({ fate }) => fate === 'trained')).toHaveLength(4);
      expect(batch.draws.at(-1)?.wave).toBe(batch.draws.length / 3 - 1);
    }
  });
});

describe('without groups that can be trained on', () => {
  it('pauses after max_num_gen_batches, and says what to do', async () => {
    const log = await loop.create({ algorithm: { filter_groups: { enable: true, max_num_gen_batches: 2 } } });
    await expect(loop.driven(log, { score: () => 1 })).rejects.toMatchObject({
      kind: 'pause',
      code: 'TooFewGroups',
      message: 'iteration 1: 0 of 4 groups have samples that differ in score, after sampling 2 times',
      hint: expect.stringContaining(`petrel resume ${log.runId} algorithm.filter_groups.max_num_gen_batches=4`),
    });
  });

  it('pauses when the scorer does not return the metric for a sample, and names what it returns', async () => {
    const filtering = { algorithm: { filter_groups: { enable: true, metric: 'accuracy' } } };
    await expect(loop.completed(filtering, { score: () => ({ score: 1, acc: 1 }) })).rejects.toMatchObject({
      kind: 'pause',
      code: 'MissingColumn',
      message: expect.stringMatching(/^the scorer returned no number "accuracy" for sample \d+$/),
      hint: expect.stringContaining('it returns score, acc'),
    });
  });
});
