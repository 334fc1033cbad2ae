// @module-tag long
import { rmSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { checkpointManifest, resultRecord, updateRecord, weightsManifest } from '../../core/records/schema.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import { stopStack } from '../../infra/stack/index.ts';
import type { ProcessIdentity } from '../../infra/stack/process.ts';
import { encodeRecord, needRecord } from '../../log/objects/records.ts';
import { sharesVariable } from '../../workers/membership.ts';
import { runWords } from '../cli.ts';
import { harm, keepCopy } from '../damage.ts';
import { onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';
import { firstQuick } from '../first-quick.ts';

const recipe = { actor: { ppo_mini_batch_size: 2, ppo_epochs: 3 }, trainer: { total_training_steps: 5, save_freq: 2 } };

const { loop, injector } = loopWithFaults();
let undisturbed: string[];
let restore: (() => void)[] = [];

beforeAll(async () => {
  await loop.up(onePool);
  const run = await loop.start(recipe);
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
});
afterEach(() => {
  restore.forEach((put) => put());
  restore = [];
});

/** A run that is stopped after iteration k, with its checkpoints written. */
async function heldAt(k: number): Promise<StartedRun> {
  const run = await loop.create(recipe);
  injector.arm({
    id: `at-${run.runId}`,
    point: 'decide.after',
    process: 'control',
    facts: { kind: 'update', runId: run.runId, iteration: k },
    action: 'stand',
  });
  await loop.drive(run);
  const control = await standsAt(`at-${run.runId}`);
  await loop.tell(run, 'pause');
  injector.thaw(control);
  await loop.reaches(run, 'paused');
  expect((await run.log.head())?.position).toBe(k);
  const saved = k - (k % 2);
  await loop.until(
    run,
    `checkpoint ${saved}`,
    async () => (await run.log.checkpoints.all())[0]?.record.iteration === saved,
  );
  return run;
}

/** The process that has stopped at the point. */
async function standsAt(id: string): Promise<ProcessIdentity> {
  const { identity } = await injector.stands(id, AbortSignal.timeout(patienceMs));
  if (identity === undefined) throw new Error(`the process at ${id} is gone`);
  return identity;
}

/** Damages the object, and restores it from a copy after the test. */
function hurt(key: string, how: Parameters<typeof harm>[2]): () => void {
  const put = keepCopy(loop.store, key);
  restore.push(put);
  harm(loop.store, key, how);
  return put;
}

async function goesOnAlike(run: StartedRun): Promise<void> {
  await loop.reaches(run, 'completed');
  expect(await loop.states(run)).toEqual(undisturbed);
}

async function pausesFor(run: StartedRun, code: string): Promise<NonNullable<StatusEntry['reason']>> {
  const reason = await loop.until(run, `a pause for ${code}`, async () => {
    const status = await run.log.status.newest();
    if (status?.state === 'failed') throw new Error(`failed: ${JSON.stringify(status.reason)}`);
    return status?.state === 'paused' && status.reason?.code === code ? status.reason : undefined;
  });
  expect(reason.hint).toContain('petrel resume');
  return reason;
}

describe('a damaged checkpoint (seed 42)', () => {
  const shardOf = async (run: StartedRun) => {
    const [newest] = await run.log.checkpoints.all();
    return keys.blob(run.runId, (newest && shardsOf(newest.record)[1]?.blob) ?? '');
  };
  const manifestOf = async (run: StartedRun) => (await run.log.checkpoints.names())[0]?.key ?? '';

  firstQuick([
    ['a bit of a shard has flipped', async (run: StartedRun) => hurt(await shardOf(run), 'bit flip')],
    ['a shard is cut short', async (run: StartedRun) => hurt(await shardOf(run), 'truncation')],
    ['a shard is lost', async (run: StartedRun) => hurt(await shardOf(run), 'loss')],
    ['the manifest is cut short', async (run: StartedRun) => hurt(await manifestOf(run), 'truncation')],
    ['a bit of the manifest has flipped', async (run: StartedRun) => hurt(await manifestOf(run), 'bit flip')],
    [
      'the manifest is well-formed and speaks of other parameters and sizes',
      async (run: StartedRun) => {
        const key = await manifestOf(run);
        restore.push(keepCopy(loop.store, key));
        const { record } = await needRecord(loop.store, key, checkpointManifest);
        const actor = actorOf(record.components);
        const shards = actor.shards.map((shard) => ({
          ...shard,
          tensors: shard.tensors.map((tensor) => ({ ...tensor, start: 2 ** 40, end: 2 ** 40 + tensor.end })),
        }));
        const components = { actor: { ...actor, shards } };
        writeFileSync(loop.store.localPath(key) ?? '', encodeRecord({ ...record, components }));
      },
    ],
  ])('is passed over when %s: the one before it is used, and the weights come out the same', async (_, damage) => {
    const run = await heldAt(4);
    await damage(run);
    await kill(loop.process('local-1'));
    await loop.resume(run);
    await goesOnAlike(run);
    await loop.said(run, /checkpoint 4 cannot be used, trying an older one: .{20}/);
    await loop.said(run, /: loaded checkpoint 2$/);
  });
});

describe('results that are lost before the batch is made (seed 42)', () => {
  it('are recomputed with the same bytes: trajectories, scores, a result record', async () => {
    const run = await loop.create({ ...recipe, rollout: { n: 4, max_num_seqs: 4 } });
    injector.arm({
      id: `lost-${run.runId}`,
      point: 'wait.begin',
      process: 'control',
      facts: { stage: 'advantage', runId: run.runId, iteration: 2 },
      action: 'stand',
    });
    await loop.drive(run);
    const control = await standsAt(`lost-${run.runId}`);
    const made = await resultsOf(run, 2);
    hurt(keys.blob(run.runId, String(made.rollout[0]?.output['trajectories'])), 'bit flip');
    hurt(keys.blob(run.runId, String(made.rollout[1]?.output['trajectories'])), 'loss');
    hurt(keys.blob(run.runId, String(made.reward[2]?.output['scores'])), 'truncation');
    hurt(keys.result(run.runId, made.rollout[3]?.jobId ?? ''), 'bit flip');
    restore = [];
    injector.thaw(control);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await loop.until(
      run,
      'three lines of recomputed rollouts',
      async () => (await loop.lines(run)).filter((line) => line.includes('rollout is recomputed: ')).length >= 3,
    );
    await loop.said(run, /reward is recomputed: /);
  });
});

describe('a committed batch whose tensors are lost (seed 42)', () => {
  it('is recomputed, because it matches its record', async () => {
    const run = await loop.create(recipe);
    injector.arm({
      id: `batch-${run.runId}`,
      point: 'wait.begin',
      process: 'control',
      facts: { stage: 'update', runId: run.runId, iteration: 2 },
      action: 'stand',
    });
    await loop.drive(run);
    const control = await standsAt(`batch-${run.runId}`);
    const pending = (await run.log.head())?.pending;
    hurt(keys.blob(run.runId, pending?.record.tensors ?? ''), 'bit flip');
    restore = [];
    injector.thaw(control);
    await goesOnAlike(run);
    await loop.said(run, /advantage is recomputed: /);
  });
});

describe('a hole in the log (seed 42)', () => {
  firstQuick([
    [
      'the tensors of a batch to be replayed',
      async (run: StartedRun) => keys.blob(run.runId, (await run.log.iteration(3)).batch.record.tensors),
      'LogHole',
      '--from 2',
    ],
    [
      'an update record that later ones follow',
      async (run: StartedRun) => keys.update(run.runId, 1, 3),
      'LogHole',
      '--from 2',
    ],
    [
      'the record of the term',
      async (run: StartedRun) => keys.term(run.runId, 1),
      'MissingRecord',
      'copy of the store',
    ],
    [
      'the recipe revision',
      async (run: StartedRun) => keys.revision(run.runId, 1),
      'MissingRecord',
      'copy of the store',
    ],
  ])(
    'pauses the run and names its options when %s is lost, and a resume continues the run once the object is back',
    async (_, keyOf, code, option) => {
      const run = await heldAt(4);
      for (const { key } of await run.log.checkpoints.names())
        if (key.includes('/4-')) rmSync(loop.store.localPath(key) ?? '');
      const back = hurt(await keyOf(run), 'loss');
      await Promise.all([kill(loop.process('local-1')), kill(loop.process('control'))]);
      await loop.resume(run);
      expect((await pausesFor(run, code)).hint).toContain(option);
      back();
      await loop.resume(run);
      await goesOnAlike(run);
    },
  );

  it('pauses the run when a record of it was changed', async () => {
    const run = await heldAt(4);
    for (const { key } of await run.log.checkpoints.names())
      if (key.includes('/4-')) rmSync(loop.store.localPath(key) ?? '');
    const back = hurt(keys.update(run.runId, 1, 3), 'bit flip');
    await kill(loop.process('local-1'));
    await loop.resume(run);
    await pausesFor(run, 'LogHole');
    back();
    await loop.resume(run);
    await goesOnAlike(run);
  });
});

describe('a replay with another result than the record (seed 42)', () => {
  it('pauses the run with its options, and --from continues before it', async () => {
    const run = await heldAt(4);
    for (const { key } of await run.log.checkpoints.names())
      if (key.includes('/4-')) rmSync(loop.store.localPath(key) ?? '');
    // The record as a machine with another arithmetic would have written it.
    const { key, record } = await needRecord(loop.store, keys.update(run.runId, 1, 4), updateRecord);
    writeFileSync(loop.store.localPath(key) ?? '', encodeRecord({ ...record, stateDigest: 'e'.repeat(64) }));
    await Promise.all([kill(loop.process('local-1')), kill(loop.process('control'))]);
    await loop.resume(run);
    expect((await pausesFor(run, 'DivergentReplay')).hint).toContain(`petrel resume ${run.runId} --from 3 --accept`);
    await runWords(loop.home, ['resume', run.runId, '--from', '3', '--accept', '--wait']);
    await goesOnAlike(run);
  });
});

describe('the inputs of a run (seed 42)', () => {
  firstQuick([
    [
      'the weights of the model',
      async ({ log }: StartedRun) => keys.model((await log.revision()).inputs.model, 'model.safetensors'),
      'DamagedModel',
    ],
    [
      'its tokenizer',
      async ({ log }: StartedRun) => keys.model((await log.revision()).inputs.model, 'tokenizer.json'),
      'DamagedModel',
    ],
    [
      'the rows',
      async ({ log }: StartedRun) => {
        const folder = keys.datasetFolder((await log.revision()).inputs.train);
        return folder + (await loop.store.children(folder)).find((name) => name.endsWith('.jsonl'));
      },
      'DamagedDataset',
    ],
  ])(
    'is checked by every process before it is used: a run pauses when a bit of %s has flipped',
    async (_, keyOf, code) => {
      const run = await loop.create(recipe);
      const back = hurt(await keyOf(run), 'bit flip');
      await kill(loop.process('local-1'));
      await loop.drive(run);
      await pausesFor(run, code);
      back();
      await loop.resume(run);
      await goesOnAlike(run);
    },
  );
});

describe('weights for other processes that are damaged (seed 42)', () => {
  const before = process.env[sharesVariable];
  beforeAll(async () => {
    await stopStack(loop.home); // the next one has this environment
    process.env[sharesVariable] = 'off';
  });
  afterAll(() => {
    if (before === undefined) delete process.env[sharesVariable];
    else process.env[sharesVariable] = before;
  });

  it('are written again by a trainer', async () => {
    await loop.up(separatePools);
    const run = await loop.create(recipe);
    injector.arm({
      id: `weights-${run.runId}`,
      point: 'wait.begin',
      process: 'control',
      facts: { stage: 'rollout', runId: run.runId, iteration: 2 },
      action: 'stand',
    });
    await loop.drive(run);
    const control = await standsAt(`weights-${run.runId}`);
    const { weightsDigest } = await run.log.at(2);
    const { record } = await needRecord(loop.store, keys.weights(run.runId, weightsDigest), weightsManifest);
    hurt(keys.blob(run.runId, record.shards[0]?.blob ?? ''), 'bit flip');
    restore = [];
    injector.thaw(control);
    await goesOnAlike(run);
    await loop.said(run, /weights is recomputed: weights [0-9a-f]{12} are damaged/);
  });
});

/** The finished rollouts of an iteration, in order of their draws, and their rewards. */
async function resultsOf(run: StartedRun, iteration: number) {
  const names = await loop.store.children(`runs/${run.runId}/results/`);
  const all = await Promise.all(
    names.map(async (name) => (await needRecord(loop.store, `runs/${run.runId}/results/${name}`, resultRecord)).record),
  );
  const before = new Set(
    (await loop.iterations(run))
      .filter(({ batch }) => batch.iteration <= iteration)
      .flatMap(({ batch }) => batch.results),
  );
  const now = all.filter(({ jobId }) => !before.has(jobId));
  return {
    rollout: now.filter(({ stage }) => stage === 'rollout'),
    reward: now.filter(({ stage }) => stage === 'reward'),
  };
}
