// @module-tag long
/**
 * A run that continues with another recipe: the change is shown, accepted, and applied from a new term on. Earlier
 * iterations replay unchanged.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { changeRetention } from '../../log/run/retention-log.ts';
import { putBlob } from '../../log/objects/blobs.ts';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const recipe = { trainer: { total_training_steps: 4 } };

const loop = new LoopUnderTest();
beforeAll(async () => void (await loop.up()));
afterAll(() => loop.remove());

const petrel = (...words: string[]) => runWords(loop.home, words);

describe('resume with a changed recipe (seed 42)', () => {
  it('gets more iterations without a question', async () => {
    const run = await loop.completed(recipe);
    const resumed = await petrel('resume', run.runId, 'trainer.total_training_steps=6', '--wait', '--json');
    expect(resumed.err).toContain('trainer.total_training_steps: 4 -> 6\n');
    expect(resumed.json()).toMatchObject({
      iteration: 6,
      term: 2,
      state: 'completed',
      reason: 'changed recipe: trainer.total_training_steps',
    });
    expect((await loop.iterations(run)).map(({ batch }) => [batch.term, batch.revision])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
      [2, 2],
      [2, 2],
    ]);
    expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
    // The result equals that of a run that had this length from the beginning.
    const whole = await loop.completed({ trainer: { total_training_steps: 6 } });
    expect(await loop.states(run)).toEqual(await loop.states(whole));
  });

  it('shows changes of the experiment and needs --accept; old batches replay with their own revision', async () => {
    const run = await loop.completed(recipe);
    await expect(petrel('resume', run.runId, '--from', '2', 'actor.optim.lr=0.001')).rejects.toMatchObject({
      message: expect.stringMatching(/iterations 3 to 4 no longer count; actor.optim.lr changes the experiment/),
      hint: 'confirm with --accept',
    });
    expect((await run.log.newestTerm())?.record.term).toBe(1);
    const before = await loop.states(run);
    // There is no checkpoint of iterations 1 and 2, so the trainer must replay them with the old rate.
    await kill(loop.process('local-1'));
    await petrel('resume', run.runId, '--from', '2', 'actor.optim.lr=0.001', '--accept', '--wait');
    const after = await loop.iterations(run);
    expect(after.map(({ batch }) => actorOf(batch.components).learningRates)).toEqual([
      [0.003],
      [0.003],
      [0.001],
      [0.001],
    ]);
    expect(after.slice(0, 2).map(({ update }) => update.stateDigest)).toEqual(before.slice(0, 2));
    await loop.said(run, /replayed iteration 2/);
    expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
  });

  it('refuses changes that would make it another run, and invalid recipes', async () => {
    const run = await loop.completed(recipe);
    await expect(petrel('resume', run.runId, 'seed=7', '--accept')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('seed: 42 -> 7'),
      hint: expect.stringContaining('petrel fork'),
    });
    await expect(petrel('resume', run.runId, 'actor.optim.lrr=1')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('actor.optim.lrr'),
    });
    await expect(petrel('resume', run.runId, 'data.max_prompt_length=6', '--accept')).rejects.toMatchObject({
      hint: 'name the files again: data.train_files=<path>',
    });
  });

  it('refuses a deterministic run whose stored rows would choose a scorer with time limits', async () => {
    const lines = readFileSync(loop.validationFile, 'utf8').trim().split('\n');
    const rows = Array.from({ length: 25 }, (_, i) => JSON.parse(lines[i % lines.length]!) as object);
    const file = join(loop.home, 'timed.jsonl');
    const timed = rows.map((row, i) => ({ ...row, data_source: i === 20 ? 'math_verify' : 'exact' }));
    writeFileSync(file, timed.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const run = await loop.completed({ ...recipe, data: { train_files: file } });
    const chosenByRows = ['reward.scorer=null', 'reward.custom_reward_function.path=null'];
    await expect(petrel('resume', run.runId, ...chosenByRows, '--accept')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringMatching(
        /the stored rows of data.train_files, row 21: the scorer math_verify is not declared deterministic/,
      ),
    });
    // The same rows are fine with a scorer that is named for all of them, and where the run promises only a replay.
    await petrel(
      'resume',
      run.runId,
      'reward.scorer=exact',
      chosenByRows[1]!,
      'trainer.total_training_steps=5',
      '--accept',
      '--wait',
    );
    expect(await loop.iterations(run)).toHaveLength(5);
  });

  it('accepts a user’s scorer that a janitor is removing, since an earlier attempt stored it without a revision', async () => {
    const run = await loop.completed(recipe);
    const file = join(loop.home, 'scorer.mjs');
    writeFileSync(file, 'export const half = () => 0.5;\n');
    const blob = keys.blob(run.runId, await putBlob(loop.store, run.runId, readFileSync(file)));
    const { n: status = 0 } = (await run.log.status.newest()) ?? {};
    await changeRetention(run.log, new Date(), async () => ({
      orphans: { status, keys: [blob], since: new Date(0).toISOString(), removing: true },
    }));
    await petrel(
      'resume',
      run.runId,
      `reward.custom_reward_function.path=${file}`,
      'reward.custom_reward_function.name=half',
      'trainer.total_training_steps=5',
      '--accept',
      '--wait',
    );
    expect(await run.log.status.newest()).toMatchObject({ state: 'completed' });
    expect(await loop.store.head(blob)).toBe(readFileSync(file).byteLength);
  });

  it('takes another file of the scorer that has changed', async () => {
    const folder = join(loop.home, 'with-files');
    mkdirSync(folder);
    const file = join(folder, 'scorer.mjs');
    writeFileSync(
      file,
      "import { value } from './value.mjs';\nexport const computeScore = () => ({ score: 0, value });\n",
    );
    writeFileSync(join(folder, 'value.mjs'), 'export const value = 1;\n');
    const run = await loop.completed({
      ...recipe,
      reward: { custom_reward_function: { path: file, deterministic: true } },
    });
    writeFileSync(join(folder, 'value.mjs'), 'export const value = 2;\n');
    const words = [`reward.custom_reward_function.path=${file}`, 'trainer.total_training_steps=5'];
    await petrel('resume', run.runId, ...words, '--accept', '--wait');
    const values = (await loop.iterations(run)).map(({ batch }) => batch.metrics['reward_extra/value/mean']);
    expect([values[0], values.at(-1)]).toEqual([1, 2]);
    expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
  });

  it('accepts a validation that the run did not have', async () => {
    const run = await loop.completed(recipe);
    await petrel(
      'resume',
      run.runId,
      `data.val_files=${loop.validationFile}`,
      'trainer.total_training_steps=5',
      '--accept',
      '--wait',
    );
    expect((await run.log.evaluations.all()).map(({ iteration }) => iteration)).toContain(5);
    expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
  });
});
