/** Runs whose batches are too large for one object end in the bits of runs whose batches are not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trainingSamples } from '../../api/runs/samples.ts';
import { verifyBatches } from '../../api/checkpoints/verify.ts';
import { Forger } from '../../api/ledger/forge.test-support.ts';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { at } from '../../core/at.ts';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { batchRecord } from '../../core/records/schema.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

/** Two samples of the small recipe. */
const mostBatchBytes = 400;

const whole = new InProcessLoop(sevens);
const sharded = new InProcessLoop(sevens, { mostBatchBytes });
beforeAll(() => Promise.all([whole.up(), sharded.up()]));
afterAll(() => Promise.all([whole.remove(), sharded.remove()]));

const small: Tree = { actor: { ppo_max_token_len_per_gpu: 32 }, trainer: { total_training_steps: 2, save_freq: 1 } };

/** All but where the batch is. */
const bitsOf = ({ iterations }: RunInProcess) => essencesOf(iterations).map(({ tensors: _, ...bits }) => bits);
const weightsOf = ({ weights }: RunInProcess) => weights;
const shardsOf = ({ iterations }: RunInProcess) => iterations.map(({ batch }) => batch.shards ?? []);

const recipes: readonly (readonly [string, Tree])[] = [
  ['grpo', {}],
  ['grpo in two epochs', { actor: { ppo_epochs: 2 } }],
  ['grpo in two shuffled epochs', { actor: { ppo_epochs: 2, shuffle: true } }],
  ['grpo with a reference', { actor: { use_kl_loss: true } }],
  ['a critic', { algorithm: { adv_estimator: 'gae', lam: 0.95 }, actor: { ppo_epochs: 2 } }],
  ['policy filtration', { algorithm: { adv_estimator: 'gae', lam: 0.95, use_pf_ppo: true } }],
  [
    'an implicit reward model that learns first',
    { algorithm: { adv_estimator: 'prime' }, reward: { prime: { optim: { lr: 0.005, weight_decay: 0 } } } },
  ],
  ['flowrl, with log Z', { actor: { policy_loss: { loss_mode: 'flowrl' } } }],
  ['a loss that compares groups', { actor: { policy_loss: { loss_mode: 'gvpo' }, ppo_max_token_len_per_gpu: 64 } }],
  ['given responses', { kind: 'sft', data: { train_batch_size: 8 }, actor: { ppo_max_token_len_per_gpu: 24 } }],
  ['pairs', { kind: 'dpo', data: { train_batch_size: 8 }, actor: { ppo_max_token_len_per_gpu: 64 } }],
];

describe('a run with batches in shards (seed 42)', () => {
  it.each(recipes)('ends in the bits of a run with whole batches: %s', async (_, changes) => {
    const recipe = mergeTrees(small, changes);
    const [one, other] = [await whole.completed(recipe), await sharded.completed(recipe)];
    expect(shardsOf(one).flat()).toEqual([]);
    for (const shards of shardsOf(other)) expect(shards.length).toBeGreaterThan(1);
    expect(other.iterations.map(({ batch }) => batch.format)).toEqual([4, 4]);
    expect(bitsOf(other)).toEqual(bitsOf(one));
    expect(weightsOf(other)).toEqual(weightsOf(one));
    for (const [k, { batch }] of other.iterations.entries()) {
      const [samples, same] = await Promise.all([
        trainingSamples(batch, { log: other.log, cache: sharded.folder }),
        trainingSamples(at(one.iterations, k).batch, { log: one.log, cache: whole.folder }),
      ]);
      expect(samples).toEqual(same);
    }
    expect((await verifyBatches(other.log, 0, () => {})).every(({ ok }) => ok)).toBe(true);
  });

  it('names the shards of equal epochs twice, and stores them once', async () => {
    const run = await sharded.completed(mergeTrees(small, { actor: { ppo_epochs: 2 } }));
    for (const shards of shardsOf(run)) {
      const half = shards.length / 2;
      expect(shards.slice(0, half)).toEqual(shards.slice(half));
    }
  });
});

describe('a run whose shards are lost (seed 42)', () => {
  const shardOf = async ({ log }: { readonly log: RunLog }, k: number) => {
    const { record } = await needRecord(log.store, keys.batch(log.runId, 1, k), batchRecord);
    return keys.blob(log.runId, at(record.shards ?? [], 1));
  };

  it('makes the batch again before its update', async () => {
    const log = await sharded.create(small);
    const run = await sharded.driven(log, {
      batchMade: async (position) => sharded.store.remove(await shardOf({ log }, position + 1)),
    });
    expect(await sharded.store.head(await shardOf(run, 2))).toBeGreaterThan(0);
    expect(weightsOf(run)).toEqual(weightsOf(await sharded.completed(small)));
  });

  it('is told by the verifier and by petrel ckpt verify', async () => {
    const run = await sharded.completed(small);
    const lost = await shardOf(run, 2);
    await sharded.store.remove(lost);
    const { faults } = await verifyLedger(sharded.store, run.log.runId, { deep: false });
    expect(faults).toContainEqual(expect.objectContaining({ key: lost }));
    expect(await verifyBatches(run.log, 0, () => {})).toMatchObject([{ ok: true }, { ok: false, problem: /nothing/ }]);
  });
});

describe('a forged record of a batch in shards', () => {
  let run: RunInProcess;
  beforeAll(async () => {
    run = await sharded.completed(small);
  });

  type Forged = { format: number; shards?: string[] | undefined };
  const forgeries: readonly (readonly [string, (record: Forged) => void, RegExp])[] = [
    ['shards in another order', (record) => void record.shards?.reverse(), /micro_samples of shard 0, as in the index/],
    ['a shard too few', (record) => void record.shards?.pop(), /length of shard_micros/],
    [
      'a shard twice',
      ({ shards = [] }) => void shards.splice(0, 1, at(shards, 1)),
      /micro_samples of shard 0|every sample in a shard/,
    ],
    ['the format of whole batches', (record) => void (record.format = 3), /format 4, of a batch in shards/],
  ];
  it.each(forgeries)('is told by the verifier: %s', async (_, change, fault) => {
    const forger = new Forger(sharded.store, run.log.runId);
    const kept = await forger.read<BatchRecord>(forger.key.batch(2));
    await forger.batch(2, change);
    const { faults } = await verifyLedger(sharded.store, run.log.runId, { deep: true });
    expect(faults.map(({ expected }) => expected).join('\n')).toMatch(fault);
    await forger.batch(2, (record) => Object.assign(record, kept));
    expect((await verifyLedger(sharded.store, run.log.runId, { deep: true })).faults).toEqual([]);
  });
});
