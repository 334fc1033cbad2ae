/** FlowRL in runs: a model of log Z of each prompt is trained beside the policy. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { reproducibleMetrics } from '../../core/metrics.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
});
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

const flowrl = (miniBatch: number): Tree => ({
  actor: { policy_loss: { loss_mode: 'flowrl', flowrl_beta_coef: 2 }, ppo_mini_batch_size: miniBatch },
  trainer: { total_training_steps: 4, save_freq: 2 },
});

const essences = async (run: StartedRun) =>
  (await loop.iterations(run)).map(({ batch, update }) => ({
    tensors: batch.tensors,
    trained: batch.components,
    components: update.components,
    metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
  }));

it('estimates log Z of each prompt: 0 at first, then what it has learned', async () => {
  const run = await loop.completed(flowrl(4));
  const made = await loop.iterations(run);
  const logZ = await Promise.all(
    made.map(async ({ batch }) => {
      expect(batch.oldLogProbs).toBe('stored'); // log Z learns from them, also when there is one step
      expect(Object.keys(batch.components)).toEqual(['actor', 'logZ']);
      const tensors = decodeBatch(await getBlob(loop.store, run.runId, batch.tensors), batch.tensors);
      const logZ_S = [...(tensors.logZ_S ?? [])];
      expect(logZ_S).toHaveLength(16);
      // Responses to one prompt share its log Z.
      for (let b = 0; b < 16; b += 4) expect(new Set(logZ_S.slice(b, b + 4)).size).toBe(1);
      return logZ_S[0];
    }),
  );
  expect(logZ[0]).toBe(0);
  expect(logZ[1]).not.toBe(0);
  expect(made[1]?.update.metrics['actor/log_z']).not.toBe(0);
});

it('ends in the same bits when its trainer is killed between steps, and when roles are apart', async () => {
  const undisturbed = await loop.completed(flowrl(2));
  const id = 'log-z';
  injector.arm({ id, point: 'write.step', facts: { iteration: 4, step: 0 }, action: 'stand' });
  const run = await loop.start(flowrl(2));
  const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
  injector.disarm(id);
  if (identity === undefined) throw new Error('the trainer is gone');
  await injector.kill([{ name: 'the trainer', identity }]);
  await loop.reaches(run, 'completed');
  expect(await essences(run)).toEqual(await essences(undisturbed));
  await loop.up(separatePools);
  expect(await essences(await loop.completed(flowrl(2)))).toEqual(await essences(undisturbed));
});
