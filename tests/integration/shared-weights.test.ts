/** Workers that sample get weights from the trainer and from each other, and from the store when nobody answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { sharesVariable } from '../../workers/membership.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const samplers = 3;
const pools: readonly WorkerPool[] = [
  { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: samplers, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];
const recipe = { data: { train_batch_size: 12 }, trainer: { total_training_steps: 4 } };

async function readBy(loop: LoopUnderTest, run: StartedRun): Promise<Record<'workers' | 'store', number>[]> {
  const iterations = await loop.iterations(run);
  return iterations.slice(1).map(({ batch: { timings } }) => ({
    workers: Number(timings['perf/weights_from_workers_gb'] ?? 0),
    store: Number(timings['perf/weights_from_store_gb'] ?? 0),
  }));
}

describe.each([
  { share: 'on', from: 'workers', not: 'store' },
  { share: 'off', from: 'store', not: 'workers' },
] as const)('weights of a run with three samplers, sharing $share (seed 42)', ({ share, from, not }) => {
  const loop = new LoopUnderTest();
  const before = process.env[sharesVariable];
  beforeAll(() => {
    process.env[sharesVariable] = share;
    return loop.up(pools);
  });
  afterAll(async () => {
    if (before === undefined) delete process.env[sharesVariable];
    else process.env[sharesVariable] = before;
    await loop.remove();
  });

  it(`come from the ${from} only`, async () => {
    const run = await loop.completed(recipe);
    const read = await readBy(loop, run);
    expect(read).toHaveLength(3);
    for (const iteration of read) {
      expect(iteration[from]).toBeGreaterThan(0);
      expect(iteration[not]).toBe(0);
    }
  });
});
