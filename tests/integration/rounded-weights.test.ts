// @module-tag long
/**
 * A run in bf16 with samplers of their own: they get the values that they compute with, from workers or from the store.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { weightsManifest } from '../../core/records/schema.ts';
import { stopStack } from '../../infra/stack/index.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { needRecord, readRecord } from '../../log/objects/records.ts';
import { checkpointElements } from '../../models/checkpoint.ts';
import { engineInfo } from '../../native/index.ts';
import { sharesVariable } from '../../workers/membership.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const samplers = 2;
const pools: readonly WorkerPool[] = [
  { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: samplers, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];
const recipe = {
  data: { train_batch_size: 12 },
  model: { compute_dtype: 'bf16' },
  actor: { ppo_mini_batch_size: 12, optim: { weight_decay: 0.1 } },
  trainer: { total_training_steps: 4, save_freq: 1 },
};

const loop = new LoopUnderTest();
const before = process.env[sharesVariable];

async function completedWith(share: 'on' | 'off', workers: readonly WorkerPool[]): Promise<StartedRun> {
  await stopStack(loop.home); // the next one has this environment
  process.env[sharesVariable] = share;
  await loop.up(workers);
  return loop.completed(recipe);
}

/** The values on which equal runs must agree: `tensors` holds the samples with their log-probs. */
const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  state: update.stateDigest,
  components: update.components,
});
const essences = async (run: StartedRun) => (await loop.iterations(run)).map(essence);

/** Bytes of the publication, and of the fp32 values. */
async function sizesOf({ runId, log }: StartedRun): Promise<Record<'published' | 'fp32', number>> {
  const head = await log.head();
  const { publication } = await log.at(3);
  const manifest = await needRecord(loop.store, keys.weights(runId, publication.digest), weightsManifest);
  const { shards, dtypes } = manifest.record;
  const published = shards
    .flatMap(({ tensors }) => tensors)
    .reduce((sum, { name, start, end }) => sum + (end - start) * (dtypes[name] === 'BF16' ? 2 : 4), 0);
  const saved = head && (await log.checkpoints.manifestOf(head.position, head.stateDigest));
  return { published, fp32: saved === undefined ? 0 : 4 * checkpointElements(actorOf(saved.record.components)) };
}

/** Bytes that the samplers read in each iteration but the first, which has the weights of the model. */
async function readBy(run: StartedRun): Promise<Record<'workers' | 'store', number>[]> {
  return (await loop.iterations(run)).slice(1).map(({ batch: { timings } }) => ({
    workers: Math.round(1e9 * Number(timings['perf/weights_from_workers_gb'] ?? 0)),
    store: Math.round(1e9 * Number(timings['perf/weights_from_store_gb'] ?? 0)),
  }));
}

describe.skipIf(!engineInfo().bf16)('weights in bf16 (skipped: needs AVX512_BF16; seed 42)', () => {
  let alone: StartedRun;
  beforeAll(async () => {
    alone = await completedWith('on', onePool);
  });
  afterAll(async () => {
    if (before === undefined) delete process.env[sharesVariable];
    else process.env[sharesVariable] = before;
    await loop.remove();
  });

  it('are named by the updates, and read by nobody where the policy samples itself', async () => {
    const iterations = await loop.iterations(alone);
    expect(iterations).toHaveLength(4);
    for (const { update } of iterations) {
      const { publications, weightsDigest } = actorOf(update.components);
      expect(publications).toEqual({ BF16: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
      expect(publications.BF16).not.toBe(weightsDigest);
    }
    expect(await readBy(alone)).toEqual(iterations.slice(1).map(() => ({ workers: 0, store: 0 })));
  });

  it.each([
    { share: 'on', from: 'workers', not: 'store' },
    { share: 'off', from: 'store', not: 'workers' },
  ] as const)('give the same samples from the $from, with half of the bytes', async ({ share, from, not }) => {
    const run = await completedWith(share, pools);
    expect(await essences(run)).toEqual(await essences(alone));
    const { published, fp32 } = await sizesOf(run);
    expect(published).toBeLessThan(0.6 * fp32);
    const read = await readBy(run);
    expect(read).toHaveLength(3);
    for (const iteration of read) {
      expect(iteration[not]).toBe(0);
      expect(Array.from({ length: samplers }, (_, i) => (i + 1) * published)).toContain(iteration[from]);
    }
    // The fp32 values of the base need no publication, and no other ones were written.
    const { weightsDigest } = await run.log.at(2);
    expect(await readRecord(loop.store, keys.weights(run.runId, weightsDigest), weightsManifest)).toBeUndefined();
  });
});
