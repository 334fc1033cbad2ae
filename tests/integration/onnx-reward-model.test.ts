/**
 * A policy that learns from a reward model in ONNX: tests/onnx-classifier/llama-onnx, the same model as llama beside
 * it.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { writeGraph } from '../../infra/onnx/graph.test-support.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { readModelManifest } from '../../log/inputs/model-facts.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';
import { largestDifference } from '../score-texts.ts';

const loop = new InProcessLoop(sevens);
const models = join(packageRoot(), 'tests/onnx-classifier');
/** A copy, which is removed once a run has it. */
const folder = join(loop.folder, 'reward-model');
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  cpSync(join(models, 'llama-onnx'), folder, { recursive: true });
  undisturbed = await loop.completed(recipe());
});
afterAll(() => loop.remove());

type Iteration = RunInProcess['iterations'][number];

const recipe = (path = folder): Tree => ({
  deterministic: 'replay',
  data: { val_files: loop.inputs.validation },
  reward: { reward_model: { enable: true, path } },
  trainer: { total_training_steps: 4, save_freq: 2 },
});

const scoresOf = async ({ log: { runId } }: RunInProcess, { batch }: Iteration): Promise<Float32Array> => {
  const { modelScores_S } = decodeBatch(await getBlob(loop.store, runId, batch.tensors), 'batch');
  if (modelScores_S === undefined) throw new Error('a batch of this run has scores of the model');
  return modelScores_S;
};

describe('a policy that learns from a reward model in ONNX', () => {
  it('has its score as the reward, and that of the scorer as a column', async () => {
    const rewards = new Set<number>();
    for (const iteration of undisturbed.iterations) {
      const { runId } = undisturbed.log;
      const tensors = decodeBatch(await getBlob(loop.store, runId, iteration.batch.tensors), 'batch');
      expect(tensors.rewards_S).toEqual(await scoresOf(undisturbed, iteration));
      for (const reward of tensors.rewards_S) rewards.add(reward);
      expect(iteration.batch.metrics).toHaveProperty('reward_extra/scorer/mean');
    }
    expect(rewards.size).toBeGreaterThan(4);
  });

  it('scores as petrel’s own engine does', async () => {
    const run = await loop.completed({ ...recipe(join(models, 'llama')), trainer: { total_training_steps: 1 } });
    const [[byOnnx], [byEngine]] = [undisturbed.iterations, run.iterations];
    if (byOnnx === undefined || byEngine === undefined) throw new Error('both runs have an iteration');
    const [onnx, engine] = [await scoresOf(undisturbed, byOnnx), await scoresOf(run, byEngine)];
    expect(onnx.length).toBe(engine.length);
    expect(largestDifference(onnx, engine)).toBeLessThan(5e-6);
  });

  it('keeps the graph in the store, and ends in the same bits when the folder is gone', async () => {
    const { inputs, recipe: stored } = await undisturbed.log.revision();
    expect(JSON.stringify(stored)).not.toContain(loop.folder);
    const files = await readModelManifest(loop.store, inputs.rewardModel ?? '');
    expect(files.map(({ name }) => name)).toEqual(['config.json', 'model.onnx', 'tokenizer.json']);

    const log = await loop.create(recipe());
    rmSync(folder, { recursive: true });
    expect(essencesOf((await loop.driven(log)).iterations)).toEqual(essencesOf(undisturbed.iterations));
    cpSync(join(models, 'llama-onnx'), folder, { recursive: true });
  });

  it('pauses the run when the model gives a number that is not finite, with the reason', async () => {
    const broken = changed((path) => writeGraph(path, { brokenOver: 55 }));
    const run = loop.completed({ ...recipe(broken), trainer: { total_training_steps: 1 } });
    await expect(run).rejects.toMatchObject({
      kind: 'pause',
      code: 'RewardModelFailed',
      message: expect.stringContaining('the score NaN'),
    });
  });
});

function changed(change: (path: string) => void): string {
  const path = mkdtempSync(join(loop.folder, 'changed-'));
  cpSync(join(models, 'llama-onnx'), path, { recursive: true });
  change(path);
  return path;
}
const withConfig = (fields: object) =>
  changed((path) => {
    const file = join(path, 'config.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...fields }));
  });

describe('a reward model in ONNX is refused at the start', () => {
  it.each<readonly [string, () => Tree, RegExp]>([
    ['with two labels', () => recipe(changed((path) => writeGraph(path, { labels: 2 }))), /float32 \[batch, 2\]/],
    ['without a mask', () => recipe(changed((path) => writeGraph(path, { inputs: ['input_ids'] }))), /attention_mask/],
    ['that ignores its mask', () => recipe(changed(ignoresMask)), /padding changes it/],
    ['of a later opset', () => recipe(changed((path) => writeGraph(path, { opset: 99 }))), /[Oo]pset 99/],
    ['that is damaged', () => recipe(changed((path) => writeFileSync(join(path, 'model.onnx'), 'x'))), /model\.onnx/],
    [
      'with another tokenizer',
      () => recipe(changed((path) => writeFileSync(join(path, 'tokenizer.json'), '{}'))),
      /differs/,
    ],
    ['that reads fewer tokens', () => recipe(withConfig({ max_position_embeddings: 4 })), /the model reads 4 tokens/],
    ['in a run with deterministic: true', () => ({ ...recipe(), deterministic: true }), /depend on the processor/],
  ])('%s', async (_, made, message) => {
    const error: unknown = await loop.create(made()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidInputError);
    expect((error as Error).message).toMatch(message);
  });
});

/** The pad token 0 adds nothing to a sum of tokens, so another one stands in the config. */
function ignoresMask(path: string): void {
  writeGraph(path, { masked: false });
  const file = join(path, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...config, pad_token_id: 3 }));
}
