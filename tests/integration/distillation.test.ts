/** Runs that learn from a teacher: an input of the run, whose log-probs of the run's own samples are in its batches. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { keys } from '../../core/records/keys.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { foldersOf } from '../../log/retention/named-inputs.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { soundMetrics } from '../algorithm-recipes.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
beforeAll(async () => {
  await loop.up();
  await loop.inputs.writeTeacher();
});
afterAll(() => loop.remove());

const distilling = (loss: Tree, more: Tree = {}): Tree => ({
  distillation: { enabled: true, teacher_model: { model_path: loop.inputs.teacher }, distillation_loss: loss },
  actor: { ppo_mini_batch_size: 2, optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: 4, save_freq: 2 },
  ...more,
});

describe('a run with a teacher', () => {
  it.each<readonly [string, Tree]>([
    ['k3, alone', { loss_mode: 'k3', use_task_rewards: false }],
    ['k3, beside the rewards', { loss_mode: 'k3', distillation_loss_coef: 0.5 }],
    ['k1 as an advantage', { loss_mode: 'k1', use_policy_gradient: true, use_task_rewards: false }],
    ['the top 18 of 18 tokens', { loss_mode: 'forward_kl_topk', topk: 18, use_task_rewards: false }],
    ['the top 3 tokens, beside the rewards', { loss_mode: 'forward_kl_topk', topk: 3 }],
  ])('learns from %s', async (_, loss) => {
    const metrics = soundMetrics((await loop.completed(distilling(loss))).iterations);
    for (const one of metrics) expect(one).toMatchObject({ 'distillation/loss': expect.any(Number) });
    // k1 is a noisy advantage, and the mean of its absolute value is no KL divergence.
    if (loss['use_task_rewards'] !== false || loss['loss_mode'] === 'k1') return;
    const distance = metrics.map((one) => Number(one['distillation/abs_loss'] ?? one['distillation/loss']));
    expect(at(distance, -1)).toBeLessThan(at(distance, 0));
  });

  it('has the log-probs of the teacher’s tokens in its batches, all of which sum to 1', async () => {
    const { log, iterations } = await loop.completed(distilling({ loss_mode: 'forward_kl_topk', topk: 18 }));
    const [{ batch } = { batch: undefined }] = iterations;
    const tensors = decodeBatch(await getBlob(loop.store, log.runId, batch?.tensors ?? ''), 'batch');
    const tokens = [...(tensors.teacherTopTokens_TK ?? [])];
    const logProbs = [...(tensors.teacherTopLogProbs_TK ?? [])];
    expect(tokens).toHaveLength(18 * tensors.scored_T.length);
    for (let t = 0; t < tensors.scored_T.length; t++) {
      const [from, to] = [18 * t, 18 * (t + 1)];
      expect(new Set(tokens.slice(from, to)).size).toBe(18);
      expect(logProbs.slice(from, to).reduce((sum, one) => sum + Math.exp(one), 0)).toBeCloseTo(1, 4);
    }
    const [metrics] = soundMetrics(iterations);
    expect(metrics?.['distillation/teacher_mass']).toBeCloseTo(1, 4);
    expect(metrics?.['distillation/student_mass']).toBeCloseTo(1, 4);
  });

  it('names the teacher as an input, which the store keeps', async () => {
    const run = await loop.completed(distilling({}, { trainer: { total_training_steps: 1 } }));
    const { inputs } = await run.log.revision();
    expect(inputs.teacher).not.toBe(inputs.model);
    expect(foldersOf(inputs)).toContain(keys.modelFolder(inputs.teacher ?? ''));
  });
});

describe('a teacher is refused before the run starts', () => {
  it('when its tokenizer is another one', async () => {
    const stranger = join(loop.folder, 'stranger');
    cpSync(loop.inputs.teacher, stranger, { recursive: true });
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
      distillation: { enabled: true, teacher_model: { model_path: join(loop.folder, 'nobody') } },
    });
    await expect(refused).rejects.toThrow(/nobody/);
  });
});
