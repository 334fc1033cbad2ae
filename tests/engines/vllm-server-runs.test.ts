// @module-tag engines
/** A whole run whose responses a server of vLLM samples that somebody else has started. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { actorOf } from '../../core/records/components.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import { tinySizes } from '../loop-inputs.ts';
import { startVllm } from './vllm-serve.ts';
import type { VllmServe } from './vllm-serve.ts';

const loop = new InProcessLoop(sevens);
let server: VllmServe;
beforeAll(async () => {
  // vLLM's attention on a processor knows no head of fewer than 32 values, and keeps a head that is tied.
  await loop.up({ ...tinySizes, num_attention_heads: 1, num_key_value_heads: 1, tie_word_embeddings: false });
  server = await startVllm(loop.modelFolder, ['--enable-scale-out', '--logprobs-mode', 'processed_logprobs']);
});
afterAll(async () => {
  await server?.close();
  await loop.remove();
});

it('learns, and the server samples with the weights that the trainer has', async () => {
  const run = await loop.completed({
    deterministic: false,
    model: { compute_dtype: 'fp32' },
    trainer: { total_training_steps: 16 },
    rollout: { name: 'vllm', url: server.url, weights_dir: join(loop.folder, 'weights') },
  });
  const states = run.iterations.map(({ update }) => actorOf(update.components).stateDigest);
  expect(new Set(states).size).toBe(states.length);
  const of = (name: string) => run.iterations.map(({ batch }) => Number(batch.metrics[name]));
  const [first = 0] = of('critic/score/mean');
  expect(of('critic/score/mean').at(-1)).toBeGreaterThan(first + 0.2);
  // verl's metric: the difference of the probabilities of the sampled tokens. One update changes them by more.
  const differences = of('training/rollout_probs_diff_max');
  expect(Math.max(...differences), differences.join(' ')).toBeLessThan(1e-4);
});
