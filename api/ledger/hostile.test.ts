/** Each possible fault of a run is found and named, even when all digests agree with the forged record. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import type {
  BatchRecord,
  CheckpointManifest,
  EvalRecord,
  ResultRecord,
  RevisionRecord,
  StatusEntry,
  UpdateRecord,
} from '../../core/records/schema.ts';
import { putBlob } from '../../log/objects/blobs.ts';
import { stateDigests } from '../../tests/state-digests.ts';
import { openStore } from '../../infra/store/open.ts';
import { encodeSafetensors } from '../../models/safetensors.ts';
import { f32 } from '../../models/trajectories.ts';
import { builtState, buildRun } from '../../tests/run-builder.ts';
import { quickFolder } from '../../tests/quick-folder.ts';
import { Forger } from './forge.test-support.ts';
import { verifyLedger } from './verify.ts';
import type { LedgerFault } from './verify.ts';

const folder = mkdtempSync(join(quickFolder(), 'petrel-ledger-'));
const pristine = join(folder, 'pristine');
const hurt = join(folder, 'hurt');
let runId = '';
let sftId = '';
let store: Store;
let forger: Forger;
beforeAll(async () => {
  const origin = await openStore(pristine);
  ({ runId } = await buildRun(origin, { done: 4, checkpoints: [1, 4], evaluations: [0, 4] }));
  ({ runId: sftId } = await buildRun(origin, {
    name: 'rows',
    kind: 'sft',
    done: 4,
    checkpoints: [4],
    evaluations: [4],
  }));
  const bytes = encodeSafetensors({ weights: f32(builtState(2).weights) });
  const shards = [
    {
      blob: await putBlob(origin, runId, bytes),
      bytes: bytes.byteLength,
      tensors: [{ name: 'weights', start: 0, end: 10 }],
    },
  ];
  const published = { format: 1, weightsDigest: weightsAt(2), dtype: 'F32', shards };
  await new Forger(origin, runId).write(keys.weights(runId, weightsAt(2)), published);
});
beforeEach(async () => {
  cpSync(pristine, hurt, { recursive: true });
  store = await openStore(hurt);
  forger = new Forger(store, runId);
});
afterEach(() => rmSync(hurt, { recursive: true, force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const weightsAt = (k: number) => stateDigests(builtState(k)).weightsDigest;
const stateAt = (k: number) => stateDigests(builtState(k)).stateDigest;

const faults = async (deep = true, id = runId): Promise<readonly LedgerFault[]> =>
  (await verifyLedger(store, id, { deep })).faults;
const blobOf = async (k: number, field: 'tensors') =>
  forger.key.blob((await forger.read<BatchRecord>(forger.key.batch(k)))[field]);
const outputOf = async (k: number, stage: string, name: string) => {
  const { results } = await forger.read<BatchRecord>(forger.key.batch(k));
  const record = await forger.read<ResultRecord>(
    forger.key.result(results.find((jobId) => jobId.startsWith(stage)) ?? ''),
  );
  return forger.key.blob(String((record.output as Record<string, unknown>)[name]));
};

/** Flips one bit of an object; `at` from 0 to 1. */
function flip(key: string, at = 0.5): void {
  const path = store.localPath(key) ?? '';
  const bytes = readFileSync(path);
  const index = Math.floor((bytes.length - 1) * at);
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** Expects a fault at this key that says so. */
const toTell = (key: string, expected: RegExp, found = /./) =>
  expect.objectContaining({ key, expected: expect.stringMatching(expected), found: expect.stringMatching(found) });

describe('what is missing or damaged', () => {
  it('is not there in a run that is in order', async () => {
    expect(await faults()).toEqual([]);
    expect(await faults(true, sftId)).toEqual([]);
    expect(await faults(false)).toEqual([]);
  });

  it('a batch record', async () => {
    forger.remove(forger.key.batch(2));
    expect(await faults()).toContainEqual(
      toTell(forger.key.batch(2), /the batch record that the update applies/, /nothing/),
    );
  });

  it('an iteration in the middle', async () => {
    forger.remove(forger.key.batch(2), forger.key.update(2));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(2), /the log continues at position 3/, /nothing/));
  });

  it('an update in the middle', async () => {
    forger.remove(forger.key.update(2));
    expect(await faults()).toContainEqual(toTell(forger.key.update(2), /the log continues at position 3/, /nothing/));
  });

  it('the end of a completed run', async () => {
    forger.remove(forger.key.update(4));
    expect(await faults()).toContainEqual(
      toTell(keys.term(runId, 1).replace('1/term.json', ''), /iterations of a completed run: 4/, /3/),
    );
  });

  it('the checkpoint of a completed run', async () => {
    forger.remove(forger.key.checkpoint(4, stateAt(4)));
    expect(await faults()).toContainEqual(toTell(keys.checkpoints(runId), /checkpoint of iteration 4/, /those of 1/));
  });

  it('status entries before the newest, which is the one that counts', async () => {
    const first = await forger.read<StatusEntry>(forger.key.status());
    for (const n of [4, 5, 8]) await forger.write(forger.key.status(n), { ...first, n, state: 'paused' });
    expect(await faults(false)).toEqual([2, 6].map((n) => toTell(forger.key.status(n), /entries up to 8/, /nothing/)));
    expect((await verifyLedger(store, runId)).state).toBe('paused');
  });

  it('a result that a batch names', async () => {
    const { results } = await forger.read<BatchRecord>(forger.key.batch(3));
    forger.remove(forger.key.result(results[0] ?? ''));
    expect(await faults(false)).toEqual([toTell(forger.key.result(results[0] ?? ''), /names it/, /nothing/)]);
  });

  it.each(['trajectories', 'scores'])('%s that a result names', async (name) => {
    const key = await outputOf(2, name === 'scores' ? 'reward' : 'rollout', name);
    forger.remove(key);
    expect(await faults(false)).toContainEqual(toTell(key, /names it/, /nothing/));
  });

  it('tensors of a batch, unless retention marked them at or below its floor', async () => {
    const [first, second] = [await blobOf(1, 'tensors'), await blobOf(2, 'tensors')];
    forger.remove(first, second);
    const told = [first, second].map((key) => toTell(key, /names it/, /nothing/));
    expect((await verifyLedger(store, runId)).faults).toEqual(told);
    const entry = { format: 1, runId, n: 1, floor: 1, condemned: [first, second], verified: [] };
    await forger.write(keys.retention(runId, 1), entry);
    const verdict = await verifyLedger(store, runId);
    expect(verdict.faults).toEqual(told.slice(1));
    expect(verdict.retired).toBe(1);
  });

  it.each([
    ['the claim', () => forger.key.run()],
    ['the recipe', () => forger.key.revision()],
    ['the status', () => forger.key.status()],
    ['a term', () => forger.key.term()],
    ['a batch', () => forger.key.batch(3)],
    ['the last update', () => forger.key.update(4)],
    ['a validation', () => forger.key.evaluation(4)],
    ['a checkpoint', () => forger.key.checkpoint(4, stateAt(4))],
    ['published weights', () => forger.key.weights(weightsAt(2))],
  ])('a bit of the record of %s', async (_, key) => {
    flip(key(), 0.7);
    expect((await faults(false)).map((fault) => fault.key)).toContain(key());
  });

  it('a bit of a blob that a batch, a result or a checkpoint names', async () => {
    const manifest = await forger.read<CheckpointManifest>(forger.key.checkpoint(4, stateAt(4)));
    const blobs = [
      await blobOf(3, 'tensors'),
      await outputOf(3, 'rollout', 'trajectories'),
      await outputOf(3, 'reward', 'scores'),
      ...shardsOf(manifest).map(({ blob }) => forger.key.blob(blob)),
    ];
    for (const blob of blobs) flip(blob, 1);
    const found = (await faults()).map(({ key }) => key);
    for (const blob of blobs) expect(found).toContain(blob);
  });

  it('a piece at the end of a blob, without reading more than headers', async () => {
    const key = await blobOf(3, 'tensors');
    writeFileSync(store.localPath(key) ?? '', readFileSync(store.localPath(key) ?? '').subarray(0, -4));
    expect(await faults(false)).toContainEqual(toTell(key, /safetensors/, /its tensors take/));
  });

  it('a bit of the model and of the rows', async () => {
    const { inputs } = await forger.read<RevisionRecord>(forger.key.revision());
    flip(keys.model(inputs.model, 'config.json'));
    flip(keys.dataset(inputs.train, 'rows.jsonl'));
    expect(await faults()).toEqual([
      toTell(keys.model(inputs.model, 'config.json'), /digest/),
      toTell(`datasets/${inputs.train}`, /files whose digest names the dataset/),
    ]);
  });
});

describe('a lie that all digests agree with', () => {
  /** The only faults are these, at batch k. */
  const tellsOnly = async (key: string, ...told: readonly (readonly [expected: RegExp, found?: RegExp])[]) =>
    expect(await faults()).toEqual(told.map(([expected, found]) => toTell(key, expected, found)));

  it('a draw that occurs twice', async () => {
    await forger.batch(3, ({ draws }) => void (draws[0] = { ...draws[0]!, draw: 1 }));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(3), /draw 4/, /draw 1 a second time/));
  });

  it('a draw that has no outcome', async () => {
    await forger.batch(3, (batch) => void (batch.draws = batch.draws.slice(1)));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(3), /an outcome for draw 4/, /draw 5 next/));
  });

  it('a row that the seed does not give', async () => {
    await forger.batch(2, ({ draws }) => void ([draws[0]!.row, draws[1]!.row] = [draws[1]!.row, draws[0]!.row]));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(2), /row of draw 2 0/, /1/));
  });

  it('a place of the batch that two samples use', async () => {
    await forger.batch(2, ({ draws }) => void (draws[1]!.samples[0] = 1));
    expect(await faults()).toContainEqual(
      toTell(forger.key.batch(2), /place 1 of the batch used by one sample/, /draw 3 uses it a second time/),
    );
  });

  it('a sample without a score that is trained on', async () => {
    await forger.batch(
      2,
      ({ draws }) => void ([draws[1]!.samples[0], draws[1]!.samples[1]] = ['its group was filtered', 2]),
    );
    expect(await faults()).toEqual(
      expect.arrayContaining([
        toTell(forger.key.batch(2), /sample 0 of draw 3 in the batch: it has score 1/),
        toTell(await blobOf(2, 'tensors'), /sample 1 of draw 3/, /another response/),
      ]),
    );
  });

  it('a filtered draw whose samples are trained on, and one without a reason', async () => {
    await forger.batch(2, ({ draws }) => void (draws[0]!.fate = 'filtered'));
    await tellsOnly(
      forger.key.batch(2),
      [/no sample of draw 2, whose outcome is filtered/, /places 0, 1/],
      [/a reason why draw 2 was filtered/],
    );
  });

  it('the tokens of another sample in its place', async () => {
    await forger.tensors(2, (tensors) => {
      const tokens_N = tensors.tokens_N.slice();
      tokens_N.copyWithin(tensors.offsets_S1[1] ?? 0, 0, tensors.offsets_S1[1]);
      return { ...tensors, tokens_N };
    });
    await tellsOnly(await blobOf(2, 'tensors'), [
      /sample 1 of draw 2 at place 1, as it was sampled/,
      /another response/,
    ]);
  });

  it('other log-probs, other rewards, masked tokens', async () => {
    await forger.tensors(1, (tensors) => ({
      ...tensors,
      rolloutLogProbs_T: (tensors.rolloutLogProbs_T ?? new Float32Array()).map((value, t) => (t === 0 ? -0 : value)),
    }));
    await forger.tensors(2, (tensors) => ({ ...tensors, rewards_S: Float32Array.of(1, 0.5, 1) }));
    await forger.tensors(3, (tensors) => ({ ...tensors, mask_T: tensors.mask_T.map((_, t) => (t === 0 ? 0 : 1)) }));
    expect(await faults()).toEqual([
      toTell(await blobOf(1, 'tensors'), /sample 0 of draw 0/, /other log-probs/),
      toTell(await blobOf(2, 'tensors'), /sample 1 of draw 2/, /another reward than 0/),
      toTell(await blobOf(3, 'tensors'), /sample 0 of draw 4/, /response tokens are masked/),
    ]);
  });

  it('a sample that the optimiser meets twice', async () => {
    await forger.tensors(2, (tensors) => ({ ...tensors, microSamples: Int32Array.of(0, 1, 1) }));
    await tellsOnly(
      await blobOf(2, 'tensors'),
      [/each sample once in step 0/, /1 occur twice/],
      [/sample 1 trained once/, /2 times/],
      [/sample 2 trained once/, /0 times/],
    );
  });

  it('rows other than those to be learnt', async () => {
    forger = new Forger(store, sftId);
    await forger.tensors(2, (tensors) => ({
      ...tensors,
      tokens_N: tensors.tokens_N.map((token, n) => (n === tensors.tokens_N.length - 1 ? token + 1 : token)),
    }));
    expect(await faults(true, sftId)).toEqual([
      toTell(await blobOf(2, 'tensors'), /sample 0 of draw 3/, /another response/),
    ]);
  });

  it('a result that two batches are made of', async () => {
    const { results } = await forger.read<BatchRecord>(forger.key.batch(2));
    await forger.batch(3, (batch) => void (batch.results = [...results.slice(0, 2), batch.results[2] ?? '']));
    expect(await faults(false)).toContainEqual(
      toTell(forger.key.batch(3), /used by one batch/, /2\/batch.json uses it too/),
    );
  });

  it('a result of another stage, and one that another job left', async () => {
    const [rollout = '', reward = ''] = (await forger.read<BatchRecord>(forger.key.batch(2))).results;
    await forger.change<ResultRecord>(forger.key.result(rollout), (record) => void (record.stage = 'reward'));
    await forger.change<ResultRecord>(forger.key.result(reward), (record) => void (record.jobId = rollout));
    expect(await faults()).toEqual([
      toTell(forger.key.result(rollout), /stage rollout/, /reward/),
      toTell(forger.key.result(reward), /jobId/),
    ]);
  });

  it('a batch that its result does not have', async () => {
    const made = (await forger.read<BatchRecord>(forger.key.batch(2))).results.at(-1) ?? '';
    await forger.change<ResultRecord>(
      forger.key.result(made),
      ({ output }) => void ((output as { metrics: object }).metrics = {}),
    );
    await tellsOnly(forger.key.batch(2), [/metrics, as in its result: {}/]);
  });

  it('an update of another batch', async () => {
    await forger.change<{ batch: string }>(forger.key.update(4), (update) => void (update.batch = stateAt(3)));
    await tellsOnly(forger.key.update(4), [/batch, the digest of the batch record/]);
  });

  it('another parent, or another state of the parent', async () => {
    await forger.update(2, (update) => void (update.parentState = stateAt(3)));
    expect(await faults()).toContainEqual(toTell(forger.key.update(2), /parentState/));
    await forger.change<BatchRecord>(forger.key.batch(4), (batch) => void (batch.parent = stateAt(1)));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(4), /parent, the digest of the record before it/));
  });

  it('an update that left the state as it was, and a skipped one that did not', async () => {
    await forger.update(4, (update) => void (update.stateDigest = update.parentState));
    expect(await faults()).toContainEqual(toTell(forger.key.update(4), /a state other than that of its parent/));
    await forger.update(4, (update) =>
      Object.assign(update, { outcome: 'skipped', reason: 'so', stateDigest: stateAt(4), steps: [] }),
    );
    expect(await faults()).toContainEqual(toTell(forger.key.update(4), /the state before it, unchanged/));
  });

  it.each([
    ['cursor', { cursor: 99 }],
    ['badSteps', { badSteps: 99 }],
    ['optimizerSteps.actor', { optimizerSteps: { actor: 99 } }],
    ['optimizerSteps.critic', { optimizerSteps: { actor: 2, critic: 1 } }],
    ['controllers.klCoef', { controllers: { klCoef: 99 } }],
    ['controllers.other', { controllers: { klCoef: 0, other: { blob: 'a'.repeat(64) } } }],
  ])('a wrong %s after an update', async (name, wrong) => {
    await forger.update(2, ({ after }) => Object.assign(after, wrong));
    expect(await faults()).toContainEqual(toTell(forger.key.update(2), new RegExp(`after.${name}`)));
  });

  it('a component that the term does not have, and a state that is not that of its components', async () => {
    await forger.update(2, (update) => Object.assign(update.components, { critic: actorOf(update.components) }));
    expect(await faults()).toEqual(
      expect.arrayContaining([
        toTell(forger.key.update(2), /components actor/, /actor, critic/),
        toTell(forger.key.update(2), /stateDigest, that of its components/),
      ]),
    );
  });

  it('a wrong learning rate, and one that was not the planned one', async () => {
    await forger.batch(2, ({ components }) => void (actorOf(components).learningRates = [2e-4]));
    expect(await faults()).toEqual([
      toTell(forger.key.update(2), /lr of step 0/, /0.0001/),
      toTell(forger.key.batch(2), /learning rate 0.0001 of optimiser step 1/, /0.0002/),
    ]);
  });

  it('another profile, a recipe revision that is not there, one that its term does not go by', async () => {
    await forger.batch(2, (batch) => {
      Object.assign(actorOf(batch.components), { profile: 'p1' });
      batch.revision = 2;
    });
    expect(await faults()).toEqual(
      expect.arrayContaining([
        toTell(forger.key.batch(2), /profile of actor in its term: p0/, /p1/),
        toTell(forger.key.batch(2), /a revision from 1 to 1/, /2/),
      ]),
    );
    await forger.write(forger.key.revision(2), {
      ...(await forger.read<RevisionRecord>(forger.key.revision(1))),
      revision: 2,
      fromPosition: 2,
    });
    expect(await faults()).toContainEqual(toTell(forger.key.batch(2), /revision of its term: 1/, /2/));
    expect(await faults()).toContainEqual(toTell(forger.key.batch(3), /revision 2 or newer/, /1/));
  });

  it('an accuracy that the scores do not give, of other weights', async () => {
    await forger.change<EvalRecord>(forger.key.evaluation(4), (record) =>
      Object.assign(record, { accuracy: 0.75, weightsDigest: weightsAt(3) }),
    );
    await tellsOnly(forger.key.evaluation(4), [/weightsDigest/], [/accuracy 0.5/, /0.75/]);
  });

  it('a checkpoint that claims other weights, lacks a shard, or has its shards in the wrong order', async () => {
    const key = forger.key.checkpoint(4, stateAt(4));
    const whole = await forger.read<CheckpointManifest>(key);
    const actor = actorOf(whole.components);
    const withActor = (change: Partial<typeof actor>) =>
      forger.write(key, { ...whole, components: { actor: { ...actor, ...change } } });
    await withActor({ weightsDigest: weightsAt(3) });
    expect(await faults(false)).toContainEqual(toTell(key, /the weights of actor at position 4/));
    await withActor({ shards: actor.shards.slice(1) });
    expect(await faults(false)).toContainEqual(toTell(key, /10 elements of weights/, /0/));
    await withActor({ steps: 3 });
    expect(await faults()).toContainEqual(toTell(key, /stateDigest of the shards of actor/));
  });

  it('published weights that hash to others', async () => {
    const key = forger.key.weights(weightsAt(2));
    const manifest = await forger.read<{ weightsDigest: string }>(key);
    await forger.write(forger.key.weights(weightsAt(3)), { ...manifest, weightsDigest: weightsAt(3) });
    await tellsOnly(forger.key.weights(weightsAt(3)), [/digest of its shards/]);
  });

  it('a status entry under another number', async () => {
    await forger.change<StatusEntry>(forger.key.status(), (entry) => void (entry.n = 2));
    await tellsOnly(forger.key.status(), [/n 1/, /2/]);
  });
});

describe('terms', () => {
  /** The log continues from position 2 in a second term, which repeats iterations 3 and 4. */
  const redone = async (sealed = true, change: Parameters<Forger['redo']>[2] = () => {}) => {
    await forger.redo(2, 4, change);
    if (sealed) await forger.seal(4);
  };

  it('that continue a sealed one have no faults; abandoned iterations are listed, not counted', async () => {
    await redone();
    const verdict = await verifyLedger(store, runId, { deep: true });
    expect(verdict.faults).toEqual([]);
    expect(verdict).toMatchObject({
      terms: 2,
      position: 4,
      draws: 8,
      abandoned: [{ term: 1, from: 3, iterations: 2 }],
    });
  });

  it('need the older one to be sealed, and nothing after the seal', async () => {
    await redone(false);
    expect(await faults(false)).toEqual([toTell(forger.key.batch(5), /a seal that closes term 1/, /nothing/)]);
  });

  it('that are sealed hold nothing after the seal', async () => {
    const update = await forger.read<object>(forger.key.update(4));
    await forger.seal(4);
    expect(await faults(false)).toEqual([]);
    await forger.write(forger.key.update(5), { ...update, iteration: 5 });
    expect(await faults(false)).toEqual([toTell(forger.key.update(5), /nothing after the seal/, /an update record/)]);
    forger.remove(forger.key.update(5));
    await forger.write(forger.key.update(6), { ...update, iteration: 6 });
    expect(await faults(false)).toEqual([toTell(forger.key.batch(6), /nothing after the seal/, /position 6/)]);
  });

  it('build on positions before the seal', async () => {
    await redone();
    await forger.seal(1);
    forger.remove(forger.key.update(2));
    expect(await faults(false)).toContainEqual(
      toTell(forger.key.batch(2), /no seal before position 2/, /a seal at position 2/),
    );
  });

  it('begin with the state of their parent, which is there', async () => {
    await redone(true, (term) =>
      Object.assign(term, {
        startState: stateAt(1),
        components: { actor: { ...actorOf(term.components), stateDigest: stateAt(1), weightsDigest: weightsAt(1) } },
      }),
    );
    expect(await faults(false)).toEqual(
      expect.arrayContaining([
        toTell(forger.key.term(2), /startState/),
        toTell(forger.key.term(2), /the weights of actor at position 2/),
      ]),
    );
    await forger.change<{ parent: object }>(
      forger.key.term(2),
      (term) => void (term.parent = { term: 2, position: 2, record: stateAt(1) }),
    );
    expect(await faults(false)).toContainEqual(toTell(forger.key.term(2), /an older term as parent/));
    await forger.change<{ parent: object }>(
      forger.key.term(2),
      (term) => void (term.parent = { term: 1, position: 9, record: stateAt(1) }),
    );
    expect(await faults(false)).toContainEqual(
      toTell(forger.key.batch(5), /seal before position 9|later term builds on position 9/),
    );
  });

  /** Term 2 begins with another state, and names the result of a standby's update as its reason. */
  const begunByStandby = async (output: object = {}, stage = 'update', profile = 'any') => {
    const [stateDigest, weightsDigest] = [stateAt(1), weightsAt(1)];
    await redone(true, (term) =>
      Object.assign(term, {
        startState: stateDigest,
        components: {
          actor: { profile: { ...actorOf(term.components).profile, id: profile }, stateDigest, weightsDigest },
        },
        standby: { result: 'update-1' },
      }),
    );
    const { after } = await forger.read<UpdateRecord>(forger.key.update(2));
    const made = { stateDigest, components: { actor: { stateDigest, weightsDigest } }, after, ...output };
    const writer = { process: 'train-2', at: '2026-01-02T03:04:05.000Z' };
    const result = { format: 2, jobId: 'update-1', stage, output: made, timings: {}, writer };
    await forger.write(forger.key.result('update-1'), result);
  };
  const startFaults = async () => (await faults(false)).filter(({ key }) => /term\.json|update-1/.test(key));

  it('may begin with the state of a standby, which the result of its update names', async () => {
    await begunByStandby();
    expect(await startFaults()).toEqual([]);
    forger.remove(forger.key.result('update-1'));
    expect(await startFaults()).toEqual([toTell(forger.key.result('update-1'), /the update of a standby/, /nothing/)]);
  });

  it('do not begin with the state of a standby in a run that is deterministic', async () => {
    await begunByStandby({}, 'update', 'det-fp32-1');
    expect(await startFaults()).toEqual([
      toTell(forger.key.term(2), /only in a later term of a run that is not/, /one/),
    ]);
  });

  it.each([
    ['another state', { stateDigest: 'd'.repeat(64) }, 'update', () => forger.key.term(2)],
    [
      'other weights',
      { components: { actor: { stateDigest: stateAt(1), weightsDigest: stateAt(2) } } },
      'update',
      () => forger.key.term(2),
    ],
    [
      'other counters',
      { after: { cursor: 2, optimizerSteps: { actor: 1 }, badSteps: 0, controllers: { klCoef: 0 } } },
      'update',
      () => forger.key.result('update-1'),
    ],
    ['the result of another stage', {}, 'advantage', () => forger.key.result('update-1')],
  ])('do not begin with the state of a standby that has named %s', async (_, output, stage, key) => {
    await begunByStandby(output, stage);
    expect((await startFaults()).map((fault) => fault.key)).toContain(key());
  });

  it('name the terms before them as their parents do', async () => {
    await redone(true, (term) => void (term.lineage = [[1, 0, 1]]));
    expect(await faults(false)).toEqual([]);
    await forger.change<{ lineage: number[][] }>(forger.key.term(2), (term) => void (term.lineage = [[1, 1, 1]]));
    expect(await faults(false)).toContainEqual(toTell(forger.key.term(2), /lineage \[\[1,0,1\]\]/, /\[\[1,1,1\]\]/));
  });

  it('are dense', async () => {
    await redone();
    forger.remove(forger.key.term(2));
    expect(await faults(false)).toContainEqual(toTell(forger.key.term(2), /the record of term 2/, /nothing/));
  });

  it('may skip only draws that have no other outcome', async () => {
    await redone(true, (term) => void (term.skippedDraws = [[4, 6]]));
    expect(await faults(false)).toContainEqual(
      toTell(forger.key.batch(3, 2), /no outcome for draw 4: a term skips it/, /outcome trained/),
    );
    await forger.change<{ skippedDraws: number[][] }>(
      forger.key.term(2),
      (term) => void (term.skippedDraws = [[3, 4]]),
    );
    expect(await faults(false)).toContainEqual(
      toTell(forger.key.term(2), /to skip draws from 4 on/, /draw 3, which has one/),
    );
  });

  it('may skip draws between batches', async () => {
    await redone(true, (term) => void (term.skippedDraws = [[8, 10]]));
    await forger.change<BatchRecord>(forger.key.batch(4, 2), ({ after }) => void (after.cursor = 10));
    const verdict = await verifyLedger(store, runId);
    expect(verdict.fates).toMatchObject({ trained: 8, skipped: 2 });
    expect(verdict.draws).toBe(10);
    await forger.change<{ skippedDraws: number[][] }>(
      forger.key.term(2),
      (term) => void (term.skippedDraws = [[8, 2 ** 50]]),
    );
    expect((await verifyLedger(store, runId)).fates.skipped).toBe(2);
  });

  it('are closed by a seal that is of its place in the chain', async () => {
    await redone();
    await forger.change<BatchRecord>(forger.key.batch(5), (seal) =>
      Object.assign(seal, { parent: stateAt(1), term: 2 }),
    );
    expect(await faults(false)).toEqual([
      toTell(forger.key.batch(5), /term 1/, /2/),
      toTell(forger.key.batch(5), /parent, the digest of the record before it/),
    ]);
  });
});

describe('random damage', () => {
  const all = async () => (await store.list(`runs/${runId}/`)).filter((key) => !key.includes('/logs/'));

  it('of any byte of any object of the run is never passed over, and ends no verification (seed 42)', async () => {
    const names = await all();
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 255 }), async (which, where, bits) => {
        const key = names[which % names.length] ?? '';
        const path = store.localPath(key) ?? '';
        const bytes = readFileSync(path);
        const hurt = Uint8Array.from(bytes, (byte, i) => (i === where % bytes.length ? byte ^ bits : byte));
        writeFileSync(path, hurt);
        const found = await faults();
        writeFileSync(path, bytes);
        if (found.length === 0)
          throw new Error(
            `${key}: byte ${where % bytes.length} of ${bytes.length}, bits ${bits}: ${new TextDecoder().decode(hurt).slice(0, 200)}`,
          );
      }),
      { numRuns: 50, seed: 42 },
    );
  });

  it('by cutting, by doubling, and by putting one object in the place of another, neither (seed 42)', async () => {
    const names = await all();
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.nat(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom('cut', 'double', 'swap'),
        async (which, other, share, how) => {
          const path = store.localPath(names[which % names.length] ?? '') ?? '';
          const bytes = readFileSync(path);
          const stranger = readFileSync(store.localPath(names[other % names.length] ?? '') ?? '');
          const hurt =
            how === 'cut'
              ? bytes.subarray(0, Math.floor((bytes.length - 1) * share))
              : how === 'double'
                ? Buffer.concat([bytes, bytes])
                : stranger;
          if (hurt.equals(bytes)) return;
          writeFileSync(path, hurt);
          const found = await faults();
          writeFileSync(path, bytes);
          expect(found).not.toEqual([]);
        },
      ),
      { numRuns: 25, seed: 42 },
    );
  });
});
