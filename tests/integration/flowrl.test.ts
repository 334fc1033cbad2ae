/** FlowRL in runs: a model of log Z of each prompt is trained beside the policy. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
beforeAll(() => loop.up());
afterAll(() => loop.remove());

it('estimates log Z of each prompt: 0 at first, then what it has learned', async () => {
  const { log, iterations: made } = await loop.completed({
    actor: { policy_loss: { loss_mode: 'flowrl', flowrl_beta_coef: 2 }, ppo_mini_batch_size: 4 },
    trainer: { total_training_steps: 4, save_freq: 2 },
  });
  const logZ = await Promise.all(
    made.map(async ({ batch }) => {
      expect(batch.oldLogProbs).toBe('stored'); // log Z learns from them, also when there is one step
      expect(Object.keys(batch.components)).toEqual(['actor', 'logZ']);
      const tensors = decodeBatch(await getBlob(loop.store, log.runId, batch.tensors), batch.tensors);
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
