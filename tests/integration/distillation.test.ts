/** Runs that learn from a teacher: an input of the run, whose log-probs of the run's own samples are in its batches. */
import { writeFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { metricInfo, reproducibleMetrics } from '../../core/metrics.ts';
import { keys } from '../../core/records/keys.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { foldersOf } from '../../infra/retention/named-inputs.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';
import { saveRandomModel } from '../random-model.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
const teacher = join(loop.home, 'teacher');
let injector: Injector;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  await saveRandomModel(teacher, teacherSizes, 0.2);
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

/** Sizes of a teacher with another shape than the student, and with the same tokenizer. */
const teacherSizes = {
  hidden_size: 48,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  vocab_size: 18,
  max_position_embeddings: 64,
};

const distilling = (loss: Tree, more: Tree = {}): Tree => ({
  distillation: { enabled: true, teacher_model: { model_path: teacher }, distillation_loss: loss },
  actor: { ppo_mini_batch_size: 2, optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: 4, save_freq: 2 },
  ...more,
});

const metricsOf = async (run: StartedRun) =>
  (await loop.iterations(run)).map(({ batch, update }) => ({ ...batch.metrics, ...update.metrics })) as Record<
    string,
    number
  >[];

const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  trained: batch.components,
  state: update.stateDigest,
  counters: update.after,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});
const essences = async (run: StartedRun) => (await loop.iterations(run)).map(essence);

describe('a run with a teacher', () => {
  it.each<readonly [string, Tree]>([
    ['k3, alone', { loss_mode: 'k3', use_task_rewards: false }],
    ['k3, beside the rewards', { loss_mode: 'k3', distillation_loss_coef: 0.5 }],
    ['k1 as an advantage', { loss_mode: 'k1', use_policy_gradient: true, use_task_rewards: false }],
    ['the top 18 of 18 tokens', { loss_mode: 'forward_kl_topk', topk: 18, use_task_rewards: false }],
    ['the top 3 tokens, beside the rewards', { loss_mode: 'forward_kl_topk', topk: 3 }],
  ])('learns from %s', async (_, loss) => {
    const run = await loop.completed(distilling(loss));
    const metrics = await metricsOf(run);
    for (const one of metrics) {
      expect(Object.entries(one).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
      expect(one).toMatchObject({ 'training/skipped_steps': 0, 'distillation/loss': expect.any(Number) });
      expect(Object.keys(one).filter((name) => metricInfo(name) === undefined)).toEqual([]);
    }
    // k1 is a noisy advantage, and the mean of its absolute value is no KL divergence.
    if (loss['use_task_rewards'] !== false || loss['loss_mode'] === 'k1') return;
    const distance = metrics.map((one) => Number(one['distillation/abs_loss'] ?? one['distillation/loss']));
    expect(at(distance, -1)).toBeLessThan(at(distance, 0));
  });

  it('has the log-probs of the teacher’s tokens in its batches, all of which sum to 1', async () => {
    const run = await loop.completed(distilling({ loss_mode: 'forward_kl_topk', topk: 18 }));
    const [{ batch } = { batch: undefined }] = await loop.iterations(run);
    const tensors = decodeBatch(await getBlob(loop.store, run.runId, batch?.tensors ?? ''), 'batch');
    const tokens = [...(tensors.teacherTopTokens_TK ?? [])];
    const logProbs = [...(tensors.teacherTopLogProbs_TK ?? [])];
    expect(tokens).toHaveLength(18 * tensors.scored_T.length);
    for (let t = 0; t < tensors.scored_T.length; t++) {
      const [from, to] = [18 * t, 18 * (t + 1)];
      expect(new Set(tokens.slice(from, to)).size).toBe(18);
      expect(logProbs.slice(from, to).reduce((sum, one) => sum + Math.exp(one), 0)).toBeCloseTo(1, 4);
    }
    const [metrics] = await metricsOf(run);
    expect(metrics?.['distillation/teacher_mass']).toBeCloseTo(1, 4);
    expect(metrics?.['distillation/student_mass']).toBeCloseTo(1, 4);
  });

  it('names the teacher as an input, which the store keeps', async () => {
    const run = await loop.completed(distilling({}, { trainer: { total_training_steps: 1 } }));
    const { inputs } = await run.log.revision();
    expect(inputs.teacher).not.toBe(inputs.model);
    expect(foldersOf(inputs)).toContain(keys.modelFolder(inputs.teacher ?? ''));
  });

  it('ends in the same bits when its trainer is killed between steps, and when roles are apart', async () => {
    const recipe = distilling({ loss_mode: 'forward_kl_topk', topk: 3 });
    const undisturbed = await loop.completed(recipe);
    const id = 'teacher';
    injector.arm({ id, point: 'write.step', facts: { iteration: 4, step: 0 }, action: 'stand' });
    const run = await loop.start(recipe);
    const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
    injector.disarm(id);
    if (identity === undefined) throw new Error('the trainer is gone');
    await injector.kill([{ name: 'the trainer', identity }]);
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
    await loop.up(separatePools);
    expect(await essences(await loop.completed(recipe))).toEqual(await essences(undisturbed));
  });
});

describe('a teacher is refused before the run starts', () => {
  it('when its tokenizer is another one', async () => {
    const stranger = join(loop.home, 'stranger');
    await saveRandomModel(stranger, teacherSizes, 0.2);
    const tokenizer = join(stranger, 'tokenizer.json');
    writeFileSync(tokenizer, `${readFileSync(tokenizer, 'utf8')}\n`);
    const recipe = distilling({});
    const refused = loop.create({
      ...recipe,
      distillation: { enabled: true, teacher_model: { model_path: stranger } },
    });
    await expect(refused).rejects.toThrow(/has another tokenizer than the model/);
  });

  it('when more of its tokens are wanted than there are', async () => {
    const refused = loop.create(distilling({ loss_mode: 'forward_kl_topk', topk: 19 }));
    await expect(refused).rejects.toThrow(/19 most probable of 18 tokens/);
  });

  it('when it is not there', async () => {
    const refused = loop.create({
      distillation: { enabled: true, teacher_model: { model_path: join(loop.home, 'nobody') } },
    });
    await expect(refused).rejects.toThrow(/nobody/);
  });
});
