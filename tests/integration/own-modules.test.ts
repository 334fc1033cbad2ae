/**
 * Runs with a policy loss and an advantage estimator of the user's own. The store keeps the code, so a run needs the
 * files only when it is created.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../api/ledger/verify.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { packageRoot } from '../../infra/home.ts';
import { runWords } from '../cli.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const loop = new LoopUnderTest();
const folder = join(loop.home, 'own');
beforeAll(async () => {
  await loop.up();
  mkdirSync(folder);
});
afterAll(() => loop.remove());

const petrel = (...words: string[]) => runWords(loop.home, words);

/** The files of the example, for one run. */
function exampleFiles(): { readonly loss: string; readonly estimator: string; readonly remove: () => void } {
  const [loss, estimator] = ['my-loss.ts', 'my-advantage.ts'].map((name) => {
    copyFileSync(join(packageRoot(), 'examples/11-own-loss', name), join(folder, name));
    return join(folder, name);
  }) as [string, string];
  const remove = () => [loss, estimator].forEach((path) => rmSync(path));
  return { loss, estimator, remove };
}

const recipeOf = (loss: string, estimator = 'grpo'): Tree => ({
  actor: { ppo_mini_batch_size: 2, policy_loss: { loss_mode: loss } },
  algorithm: { adv_estimator: estimator },
  trainer: { total_training_steps: 3, save_freq: -1 },
});

/** What equal runs agree on. */
const essences = async (run: StartedRun) =>
  (await loop.iterations(run)).map(({ batch, update }) => [batch.tensors, update.stateDigest, update.metrics]);

describe('the loss and the estimator of the example (seed 42)', () => {
  let undisturbed: StartedRun;
  beforeAll(async () => {
    const { loss, estimator, remove } = exampleFiles();
    undisturbed = await loop.create(recipeOf(loss, estimator));
    remove();
    await loop.drive(undisturbed);
    await loop.reaches(undisturbed, 'completed');
  });

  it('train the policy, and report their numbers', async () => {
    const made = await loop.iterations(undisturbed);
    expect(made).toHaveLength(3);
    expect(new Set(made.map(({ update }) => update.stateDigest)).size).toBe(3);
    for (const { update } of made) {
      expect(update.metrics).toMatchObject({ 'training/skipped_steps': 0, 'actor/ppo_kl': expect.any(Number) });
      expect(Number(update.metrics['actor/own/far'])).toBeGreaterThanOrEqual(0);
    }
  });

  it('are named by digest in the records, without a path of this machine', async () => {
    const { recipe, inputs } = await undisturbed.log.revision();
    expect(JSON.stringify(recipe)).not.toContain(folder);
    expect(inputs.loss).toMatchObject({ fileName: 'my-loss.ts', needs: [], deterministic: true });
    expect(inputs.estimator).toMatchObject({ fileName: 'my-advantage.ts', needs: ['groupsOfTwo'] });
    const [first] = await loop.iterations(undisturbed);
    expect(actorOf(first?.batch.components ?? {}).loss).toMatchObject({ lossMode: './my-loss.ts', own: inputs.loss });
    const blob = keys.blob(undisturbed.runId, inputs.loss?.module ?? '');
    expect(await loop.store.head(blob)).toBeGreaterThan(100);
  });

  it('give the same bits when the trainer is killed and replays', { tags: ['long'] }, async () => {
    const { loss, estimator, remove } = exampleFiles();
    const run = await loop.create(recipeOf(loss, estimator));
    remove();
    await loop.drive(run);
    await loop.passes(run, 1);
    await kill(loop.process('local-1'));
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
    // There is no checkpoint but the last one.
    await kill(loop.process('local-1'));
    await petrel('resume', run.runId, '--from', '2', '--accept', '--wait');
    await loop.said(run, /replayed iteration 2/);
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it('travel to a fork', async () => {
    const words = ['fork', undisturbed.runId, '--from', '1', '--wait', '--json'];
    const { runId } = (await petrel(...words)).json<{ runId: string }>();
    const fork = { runId, log: new RunLog(loop.store, runId) };
    expect(await loop.states(fork)).toEqual((await loop.states(undisturbed)).slice(1));
    expect((await fork.log.revision()).inputs).toEqual((await undisturbed.log.revision()).inputs);
    expect((await verifyLedger(loop.store, runId, { deep: true })).faults).toEqual([]);
  });

  it('are missed by the verifier when the store has lost them', async () => {
    const { inputs } = await undisturbed.log.revision();
    const blob = keys.blob(undisturbed.runId, inputs.loss?.module ?? '');
    const bytes = (await loop.store.get(blob)) ?? new Uint8Array();
    await loop.store.remove(blob);
    const { faults } = await verifyLedger(loop.store, undisturbed.runId, { deep: false });
    expect(JSON.stringify(faults)).toContain('the loss: ');
    await loop.store.put(blob, bytes);
  });
});

describe('a loss that fails in the middle of a run (seed 42)', () => {
  const failing = `export const loss = {
  scope: 'token', needs: ['seed'], deterministic: true,
  compute({ logProb_T }, { advantages_T, seed }) {
    const dLoss_T = advantages_T.map((a) => -a);
    if (seed[0] === 2) throw new RangeError('no more ideas');
    return { loss_T: logProb_T.map((x, t) => -x * advantages_T[t]), dLoss_T };
  },
};
`;

  it('pauses the run with its line; a resume with the corrected file completes it', async () => {
    const path = join(folder, 'fails.mjs');
    // The trial batches have the seed 1.
    writeFileSync(path, failing);
    const run = await loop.start(recipeOf(path));
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({
      code: 'OwnModuleFailed',
      message: './fails.mjs: RangeError: no more ideas',
      where: './fails.mjs:5:30',
      hint: `fix fails.mjs, then run in its folder: petrel resume ${run.runId} actor.policy_loss.loss_mode=./fails.mjs --accept`,
    });
    expect((await run.log.head())?.position).toBe(1);
    writeFileSync(path, failing.replace(/^.*no more ideas.*\n/m, ''));
    const words = ['resume', run.runId, `actor.policy_loss.loss_mode=${path}`, '--wait', '--json'];
    await expect(petrel(...words)).rejects.toMatchObject({ hint: 'confirm with --accept' });
    expect((await petrel(...words, '--accept')).json()).toMatchObject({ state: 'completed', iteration: 3 });
    const digests = (await loop.iterations(run)).map(({ batch }) => actorOf(batch.components).loss.own?.module);
    expect(new Set(digests).size).toBe(2);
    expect(digests[1]).toBe(digests[2]);
  });
});

it('an estimator that fails pauses the run; a resume with the corrected file completes it (seed 42)', async () => {
  const path = join(folder, 'advantage.mjs');
  // The trial batches have five responses.
  const failing = `export const estimator = { needs: [], deterministic: true, compute({ scores_S }) {
  if (scores_S.length === 16) return { advantages_S: scores_S.slice(1) };
  return { advantages_S: scores_S };
} };
`;
  writeFileSync(path, failing);
  const run = await loop.start(recipeOf('vanilla', path));
  expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
    code: 'OwnModuleFailed',
    message: './advantage.mjs: advantages_S: expected 16 values, got 15',
  });
  writeFileSync(path, failing.replace(/^ {2}if .*\n/m, ''));
  const words = ['resume', run.runId, `algorithm.adv_estimator=${path}`, '--accept', '--wait', '--json'];
  expect((await petrel(...words)).json()).toMatchObject({ state: 'completed', iteration: 3 });
});

describe('petrel plan', () => {
  /** The checks of a recipe with this text as its loss. */
  async function planned(text: string, keys: Tree = {}) {
    const path = join(folder, 'planned.ts');
    writeFileSync(path, text);
    const recipe = loop.recipeFile('planned', { ...recipeOf(path), ...keys });
    const { checks } = (await petrel('plan', recipe, '--json')).json<{
      readonly checks: readonly { name: string; status: string; detail: string; hint?: string }[];
    }>();
    return checks.find(({ name }) => name === 'your loss');
  }
  const example = readFileSync(join(packageRoot(), 'examples/11-own-loss/my-loss.ts'), 'utf8');

  it('shows that the gradient of a loss is its derivative', async () => {
    expect(await planned(example)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(
        /^\.\/planned\.ts: its gradient is the derivative of its loss \(\d+ of \d+ tokens of 8 trial batches, 0 at kinks left out; largest difference \d/,
      ),
    });
  });

  it('refuses a wrong gradient with the largest difference, unless it is declared', async () => {
    const wrong = example.replace('* (ratio - 1) * ratio;', '* (ratio - 1);');
    expect(wrong).not.toBe(example);
    const { status, detail } = (await planned(wrong)) ?? {};
    expect(status).toBe('failed');
    expect(detail).toMatch(
      /its gradient is not the derivative of its loss at \d+ of \d+ tokens\. The largest difference is [\d.]+, at token \d+ of trial batch \d: the module gives/,
    );
    const declared = wrong.replace('needs: [],', "needs: [], straightThrough: 'the penalty',");
    expect(await planned(declared)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(
        /^\.\/planned\.ts: straight-through terms \(declared: the penalty\), so its gradient differs/,
      ),
    });
  });

  it('refuses a file that is not there, and an export that is missing', async () => {
    const recipe = loop.recipeFile('planned', recipeOf(join(folder, 'nowhere.ts')));
    await expect(petrel('plan', recipe, '--json').then(({ out }) => out)).resolves.toContain(
      'actor.policy_loss.loss_mode: cannot read ',
    );
    expect(await planned(example.replace('export const loss', 'export const lose'))).toMatchObject({
      status: 'failed',
      detail: './planned.ts: expected an export named loss, or a default one, got lose',
    });
  });

  it('refuses what the recipe does not give, and an undeclared module in a deterministic run', async () => {
    const needing = example.replace('needs: []', "needs: ['refLogProbs']");
    expect(await planned(needing)).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('./planned.ts needs log-probs of the reference policy (refLogProbs)'),
    });
    expect(await planned(example.replace('  deterministic: true,\n', ''))).toMatchObject({
      status: 'failed',
      hint: 'if equal inputs always give equal results, add deterministic: true to the exported loss',
    });
  });
});
