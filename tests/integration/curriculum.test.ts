/** A curriculum: prompts that the policy has solved are passed over for some passes. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import type { Counters } from '../../core/records/schema.ts';
import { curriculumBlob, decodeCurriculum } from '../../core/wire/curriculum.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { getJsonBlob } from '../../infra/store/blobs.ts';
import { Injector } from '../inject.ts';
import { essences, forkedAfter } from '../killed-run.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import { testSameBits, usualPlaces } from '../same-bits.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
let recipe: Tree;
let undisturbed: StartedRun;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  recipe = {
    actor: { ppo_mini_batch_size: 2 },
    // 6 rows: each pass over them takes one and a half batches.
    data: { train_max_samples: 6, curriculum: { enable: true, metric: 'acc', solved: 0.5, revisit: 3 } },
    reward: {
      custom_reward_function: {
        path: loop.scorer('seven', `return { score: 1, acc: solutionStr.includes('7') };`),
        deterministic: true,
      },
    },
    trainer: { total_training_steps: 6, save_freq: 2 },
  };
  undisturbed = await loop.completed(recipe);
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

async function stateOf({ runId }: StartedRun, counters: Counters) {
  const blob = curriculumBlob(counters) ?? '';
  return decodeCurriculum(await getJsonBlob(loop.store, runId, blob), blob);
}

describe('a run with a curriculum (seed 42)', () => {
  it('passes over exactly the prompts that were solved the last time', async () => {
    let leftOut = 0;
    for (const { batch } of (await loop.iterations(undisturbed)).slice(1)) {
      const state = await stateOf(undisturbed, batch.before);
      const isSolved = (draw: number, row: number) => {
        const last = state.get(row);
        return last !== undefined && last.mean >= 0.5 && Math.floor(draw / 6) - last.epoch < 3;
      };
      for (const { draw, row } of batch.draws) expect(isSolved(draw, row)).toBe(false);
      const numbers = new Set(batch.draws.map(({ draw }) => draw));
      const passed = (batch.passedOver ?? []).flatMap(([start, end]) =>
        Array.from({ length: end - start }, (_, i) => start + i),
      );
      leftOut += passed.length;
      expect(numbers.size + passed.length).toBe(batch.after.cursor - batch.before.cursor);
    }
    expect(leftOut).toBeGreaterThan(0);
  });

  testSameBits(() => ({ loop, injector, recipe, undisturbed }), usualPlaces.slice(0, 1));

  it('gives a fork what it remembers', async () => {
    const run = await forkedAfter(loop, undisturbed, 4);
    const states = (made: Awaited<ReturnType<typeof essences>>) => made.map(({ state, draws }) => ({ state, draws }));
    expect(states(await essences(loop, run))).toEqual(states((await essences(loop, undisturbed)).slice(4)));
  });
});
