/** A trained reward model, exported as a sequence classifier, and a policy that learns from it. */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import { changedRecipe, inTheSameRun } from '../../api/runs/changed-recipe.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { readScoreSpec } from '../../native/model/config.ts';
import { decodeSafetensors, encodeSafetensors } from '../../models/safetensors.ts';
import { loadWeights } from '../../native/model/weights.ts';
import { createTrainer } from '../../native/index.ts';
import { byScores } from '../../workers/engine/batch/judge.ts';
import { NativePolicy } from '../../workers/engine/engines/native/policy.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';
import { largestDifference } from '../score-texts.ts';

const loop = new InProcessLoop(sevens);
const folder = join(loop.folder, 'reward-model');
let trained: RunInProcess;
beforeAll(async () => {
  await loop.up();
  trained = await loop.completed({
    kind: 'rm',
    data: { val_files: loop.inputs.validationPairs, train_batch_size: 8, max_length: 12 },
    actor: { ppo_mini_batch_size: 4, optim: { lr: 0.01 } },
    trainer: { total_training_steps: 12 },
  });
  await exportPolicy(trained.log, { folder }, { home: loop.folder });
});
afterAll(() => loop.remove());

/** Prompts with responses, some of them with pad tokens at the end. */
const sequences = [[4, 12, 5, 14, 9, 1], [4, 12, 5, 14, 8, 1], [7, 13, 2, 1, 0, 0], [6]];

const configOf = (path: string) =>
  JSON.parse(readFileSync(join(path, 'config.json'), 'utf8')) as Record<string, unknown>;

async function ownScores(path: string): Promise<Float64Array> {
  const trainer = createTrainer(readScoreSpec(configOf(path)), {
    compute: 'fp32',
    deterministic: true,
    threads: 1,
    trainable: false,
  });
  await loadWeights(path, trainer);
  const given = sequences.map((ids) => ({ prompt: Int32Array.from(ids), response: new Int32Array() }));
  const scores = await byScores(new NativePolicy(trainer), 0)(given);
  trainer.close();
  return scores;
}

describe('an exported reward model', () => {
  it('is a sequence classifier with one label and trained weights', async () => {
    expect(configOf(folder)).toMatchObject({
      architectures: ['LlamaForSequenceClassification'],
      id2label: { 0: 'LABEL_0' },
      pad_token_id: 0,
    });
    const scores = await ownScores(folder);
    expect(new Set(scores).size).toBe(sequences.length);
  });

  const python = process.env['PETREL_PYTHON'] ?? 'python3';
  const missing = missingPackages(python);
  if (missing !== undefined)
    console.log(`the scores of transformers are not compared: ${python} has no torch and transformers (PETREL_PYTHON)`);
  it.skipIf(missing !== undefined)('has the scores of transformers, one by one and padded together', async () => {
    const output = execFileSync(python, [join(import.meta.dirname, '../score_hf.py'), folder], {
      input: JSON.stringify(sequences),
      encoding: 'utf8',
      env: { ...process.env, HF_HUB_OFFLINE: '1' },
    });
    const theirs = JSON.parse(output) as {
      readonly class: string;
      readonly labels: number;
      readonly keys: readonly string[];
      readonly scores: readonly (readonly number[])[];
      readonly together: readonly (readonly number[])[];
    };
    expect(theirs).toMatchObject({ class: 'LlamaForSequenceClassification', labels: 1, keys: [] });
    const own = await ownScores(folder);
    expect(largestDifference(own, theirs.scores.flat())).toBeLessThan(1e-5);
    expect(largestDifference(own, theirs.together.flat())).toBeLessThan(1e-5);
  });

  it('can be trained on: its own head goes on', async () => {
    const run = await loop.completed({
      kind: 'rm',
      model: { path: folder },
      data: { train_batch_size: 8, max_length: 12 },
      trainer: { total_training_steps: 1 },
    });
    const [before, after] = [trained.iterations.at(-1), run.iterations[0]];
    expect(Number(after?.update.metrics['rewards/margins'])).not.toBe(0);
    expect(before?.update.components['rewardModel']?.weightsDigest).toBe((await run.log.at(0)).weightsDigest);
  });
});

const recipe = (model: Tree = {}): Tree => ({
  data: { val_files: loop.inputs.validation },
  reward: { reward_model: { enable: true, path: folder, ...model } },
  trainer: { total_training_steps: 4, save_freq: 2 },
});

describe('a policy that learns from a reward model', () => {
  let undisturbed: RunInProcess;
  beforeAll(async () => {
    undisturbed = await loop.completed(recipe());
  });

  it('has its score as the reward, and that of the scorer as a column', async () => {
    for (const { batch } of undisturbed.iterations) {
      const tensors = decodeBatch(await getBlob(loop.store, undisturbed.log.runId, batch.tensors), 'batch');
      expect(tensors.rewards_S).toEqual(tensors.modelScores_S);
      expect(batch.metrics['critic/score/mean']).toBeCloseTo(
        Number(batch.metrics['reward_extra/reward_model/mean']),
        6,
      );
      expect(batch.metrics).toHaveProperty('reward_extra/scorer/mean');
    }
  });

  it('keeps the model in the store, so that the folder is not needed any more', async () => {
    const { inputs, recipe: stored } = await undisturbed.log.revision();
    expect(inputs.rewardModel).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(stored)).not.toContain(loop.folder);
  });

  it('stays the same when a resume changes the recipe, and cannot be replaced', async () => {
    const before = await undisturbed.log.revision();
    const ports = { store: loop.store, home: loop.folder, env: process.env, now: new Date(), say: () => {} };
    const change = (override: string) =>
      changedRecipe({ overrides: [override], file: undefined, cwd: loop.folder }, before, inTheSameRun, ports);
    const changed = await change('actor.optim.lr=0.001');
    expect(changed?.inputs).toEqual(before.inputs);
    await expect(change(`reward.reward_model.path=${join(loop.folder, 'other')}`)).rejects.toThrow(/reward_model.path/);
  });

  it('adds both scores with their weights', async () => {
    const run = await loop.completed({
      ...recipe({ weight: 0.5, scorer_weight: 2 }),
      trainer: { total_training_steps: 1 },
    });
    const [made] = run.iterations;
    const of = (name: string) => Number(made?.batch.metrics[`${name}/mean`]);
    expect(of('critic/score')).toBeCloseTo(0.5 * of('reward_extra/reward_model') + 2 * of('reward_extra/scorer'), 6);
  });

  it('is enough where rows have only a prompt', async () => {
    const file = join(loop.folder, 'prompts.jsonl');
    writeFileSync(file, ['1+2=', '3+4=', '5+5=', '0+9='].map((prompt) => `${JSON.stringify({ prompt })}\n`).join(''));
    const run = await loop.completed(
      {
        data: { train_files: file },
        reward: { scorer: 'none', reward_model: { enable: true, path: folder } },
        trainer: { total_training_steps: 1 },
      },
      { score: () => 0 },
    );
    const [made] = run.iterations;
    expect(Number(made?.batch.metrics['critic/score/mean'])).not.toBe(0);
  });
});

describe('a reward model is refused at the start', () => {
  const changed = (change: (path: string) => void): string => {
    const path = join(loop.folder, 'changed');
    rmSync(path, { recursive: true, force: true });
    cpSync(folder, path, { recursive: true });
    change(path);
    return path;
  };
  const withConfig = (fields: object) =>
    changed((path) => writeFileSync(join(path, 'config.json'), JSON.stringify({ ...configOf(path), ...fields })));

  it.each<readonly [string, () => string, RegExp]>([
    ['with two labels', () => withConfig({ id2label: { 0: 'a', 1: 'b' } }), /one score, found 2 labels/],
    ['whose head has two rows', () => changed(withTwoRows), /score\.weight/],
    ['that is a language model', () => withConfig({ architectures: ['LlamaForCausalLM'] }), /a sequence classifier/],
    [
      'with another tokenizer',
      () => changed((path) => writeFileSync(join(path, 'tokenizer.json'), '{}')),
      /tokenizer\.json differs/,
    ],
    ['without its tokenizer', () => changed((path) => rmSync(join(path, 'tokenizer.json'))), /is missing/],
    ['whose folder is not there', () => join(loop.folder, 'nowhere'), /nowhere/],
  ])('%s', async (_, path, message) => {
    await expect(loop.create(recipe({ path: path() }))).rejects.toThrow(message);
  });
});

function withTwoRows(path: string): void {
  const file = join(path, 'model.safetensors');
  const { tensors } = decodeSafetensors(readFileSync(file), file);
  const head = tensors.get('score.weight');
  if (head?.dtype !== 'F32') throw new Error('an exported head is F32');
  const data = Float32Array.from([...head.data, ...head.data]);
  const changed = {
    ...Object.fromEntries(tensors),
    'score.weight': { dtype: 'F32', shape: [2, head.data.length], data } as const,
  };
  writeFileSync(file, encodeSafetensors(changed));
}

function missingPackages(python: string): true | undefined {
  try {
    execFileSync(python, ['-c', 'import torch, transformers'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return true;
  }
}
