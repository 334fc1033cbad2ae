import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

/** Two trainers, but only one process that samples for both runs and one that scores for both. */
const pools: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];
const recipes = [0.003, 0.001].map((lr) => ({ actor: { optim: { lr } }, trainer: { total_training_steps: 6 } }));

const loop = new LoopUnderTest();
beforeAll(() => loop.up(pools));
afterAll(() => loop.remove());

async function statesOf(runs: readonly StartedRun[]): Promise<string[][]> {
  await Promise.all(runs.map((run) => loop.reaches(run, 'completed')));
  return Promise.all(runs.map((run) => loop.states(run)));
}

describe('two runs side by side (seed 42)', () => {
  it('share a rollout worker without dropping each other’s samples, and get the same weights as alone', async () => {
    const together = await statesOf(await Promise.all(recipes.map((recipe) => loop.start(recipe))));
    const alone: string[][] = [];
    for (const recipe of recipes) alone.push(...(await statesOf([await loop.start(recipe)])));
    expect(together).toEqual(alone);
    expect(alone[0]).not.toEqual(alone[1]);
  });
});
