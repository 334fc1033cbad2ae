// @module-tag long
/**
 * A worker that joins in the middle of a rollout stage gets the present weights, and takes jobs that wait. The samplers
 * are slow (PETREL_PACE).
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { paceVariable } from '../../workers/engine/engines/native/paced-sampler.ts';
import { LoopUnderTest } from '../loop-under-test.ts';

const pools = (samplers: number): readonly WorkerPool[] => [
  { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: samplers, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];
const loop = new LoopUnderTest();
const before = process.env[paceVariable];
beforeAll(() => {
  process.env[paceVariable] = '20';
  return loop.up(pools(1));
});
afterAll(async () => {
  if (before === undefined) delete process.env[paceVariable];
  else process.env[paceVariable] = before;
  await loop.remove();
});

it('works within the stage that runs, with weights from memory (seed 42)', async () => {
  // 32 jobs, of which one worker takes eight at a time.
  const run = await loop.start({
    data: { train_batch_size: 32 },
    rollout: { n: 2, max_num_seqs: 2 },
    actor: { ppo_mini_batch_size: 32 },
    trainer: { total_training_steps: 3 },
  });
  await loop.passes(run, 1);
  await loop.up(pools(2));
  await loop.reaches(run, 'completed');
  const [, joined] = await loop.iterations(run);
  const results = await Promise.all(
    (joined?.batch.results ?? []).map((id) => needRecord(loop.store, keys.result(run.runId, id), resultRecord)),
  );
  const samplers = results
    .filter(({ record }) => record.stage === 'rollout')
    .map(({ record }) => record.writer.process);
  expect(samplers).toHaveLength(32);
  expect(new Set(samplers)).toEqual(new Set(['sample-1', 'sample-2']));
  expect(joined?.batch.timings['perf/weights_from_store_gb']).toBe(0);
});
