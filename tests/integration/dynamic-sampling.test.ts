/** Dynamic sampling: groups whose samples have one score are replaced by other prompts, in waves. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { ArmedFault } from '../../infra/faults/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import { testSameBits } from '../same-bits.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
let recipe: Tree;
let undisturbed: StartedRun;
/** The first iteration that needed a second wave. */
let refilled: BatchRecord;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  recipe = {
    actor: { ppo_mini_batch_size: 2 },
    algorithm: { filter_groups: { enable: true, metric: 'acc' } },
    reward: {
      custom_reward_function: {
        path: loop.scorer('seven', `return { score: 2 * solutionStr.length, acc: solutionStr.includes('7') };`),
        deterministic: true,
      },
    },
    trainer: { total_training_steps: 4, save_freq: 2 },
  };
  undisturbed = await loop.completed(recipe);
  const batches = (await loop.iterations(undisturbed)).map(({ batch }) => batch);
  const found = batches.find(({ draws }) => draws.some(({ wave }) => wave === 1));
  if (found === undefined) throw new Error('no iteration needed a second wave');
  refilled = found;
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

describe('a run with dynamic sampling (seed 42)', () => {
  it('trains on as many groups as the batch has, and each draw has an outcome', async () => {
    for (const { batch } of await loop.iterations(undisturbed)) {
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

  it('says how many groups it lacks', async () => {
    const [line] = await loop.said(undisturbed, /sampling 4 other prompts/);
    expect(line).toMatch(/iteration \d: [0-3] of 4 groups have samples that differ in acc; sampling 4 other prompts$/);
  });

  const places: readonly (readonly [string, (batch: BatchRecord) => Pick<ArmedFault, 'point' | 'facts'>])[] = [
    ['while it samples the second wave', (batch) => ({ point: 'sample.token', facts: { draw: secondWave(batch) } })],
    [
      'before the batch is committed',
      ({ iteration }) => ({ point: 'decide.before', facts: { kind: 'batch', iteration } }),
    ],
  ];
  testSameBits(
    () => ({ loop, injector, recipe, undisturbed }),
    places.map(([title, at]) => [title, () => at(refilled)]),
  );

  it('samples waves of data.gen_batch_size prompts', async () => {
    const run = await loop.completed({ ...recipe, data: { gen_batch_size: 3 }, trainer: { total_training_steps: 2 } });
    for (const { batch } of await loop.iterations(run)) {
      expect(batch.draws.length % 3).toBe(0);
      expect(batch.draws.filter(({ fate }) => fate === 'trained')).toHaveLength(4);
      expect(batch.draws.at(-1)?.wave).toBe(batch.draws.length / 3 - 1);
    }
  });
});

describe('without groups that can be trained on', () => {
  it('pauses after max_num_gen_batches, and says what to do', async () => {
    const run = await loop.start({
      algorithm: { filter_groups: { enable: true, max_num_gen_batches: 2 } },
      reward: { custom_reward_function: { path: loop.scorer('always-one', 'return 1;'), deterministic: true } },
    });
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({
      code: 'TooFewGroups',
      message: 'iteration 1: 0 of 4 groups have samples that differ in score, after sampling 2 times',
    });
    expect(reason?.hint).toContain(`petrel resume ${run.runId} algorithm.filter_groups.max_num_gen_batches=4`);
  });

  it('pauses when the scorer does not return the metric for a sample, and names what it returns', async () => {
    // The start tries the ground truth as a response.
    const body = 'return { score: 1, acc: 1, ...(solutionStr === groundTruth && { accuracy: 1 }) };';
    const run = await loop.start({
      algorithm: { filter_groups: { enable: true, metric: 'accuracy' } },
      reward: { custom_reward_function: { path: loop.scorer('other', body), deterministic: true } },
    });
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({
      code: 'MissingColumn',
      message: expect.stringMatching(/^the scorer returned no number "accuracy" for sample \d+$/),
      hint: expect.stringContaining('it returns score, acc'),
    });
  });
});

function secondWave({ draws }: BatchRecord): number {
  const draw = draws.find(({ wave }) => wave === 1)?.draw;
  if (draw === undefined) throw new Error('the batch has one wave');
  return draw;
}
