import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { reproducibleMetrics } from '../../core/metrics.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { engineInfo } from '../../native/index.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

/** Settings that add all terms to the loss and several steps to the update. */
const demanding: Tree = {
  data: { train_batch_size: 6 },
  actor: {
    ppo_mini_batch_size: 2,
    ppo_epochs: 2,
    shuffle: true,
    use_kl_loss: true,
    kl_loss_coef: 0.05,
    entropy_coeff: 0.01,
  },
  trainer: { total_training_steps: 3 },
};

const inBf16: Tree = { ...demanding, model: { compute_dtype: 'bf16' } };
const { bf16, isa } = engineInfo();

const loop = new LoopUnderTest();
let [first, second, apart, firstInBf16, apartInBf16]: (StartedRun | undefined)[] = [];
beforeAll(async () => {
  await loop.up(onePool);
  first = await loop.completed(demanding);
  second = await loop.completed(demanding);
  if (bf16) firstInBf16 = await loop.completed(inBf16);
  await loop.up(separatePools);
  apart = await loop.completed(demanding);
  if (bf16) apartInBf16 = await loop.completed(inBf16);
});
afterAll(() => loop.remove());

/** The values on which two equal runs must agree. */
const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  draws: batch.draws,
  trained: batch.components,
  counters: update.after,
  state: update.stateDigest,
  components: update.components,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});
const essences = async (run: StartedRun | undefined) => (await loop.iterations(run as StartedRun)).map(essence);

describe('a deterministic run with mini-batches, two epochs, KL loss and entropy bonus (seed 42)', () => {
  it('gives the same states, batches and metrics when it is run again', async () => {
    const made = await essences(first);
    expect(made).toHaveLength(3);
    expect(await essences(second)).toEqual(made);
  });

  it('gives the same ones when every role is in a process of its own, and the weights travel', async () => {
    expect(await essences(apart)).toEqual(await essences(first));
    const runId = apart?.runId ?? '';
    const weights = (await loop.iterations(apart as StartedRun)).map(
      ({ update }) => actorOf(update.components).weightsDigest,
    );
    // No process needs the weights of the last iteration.
    const published = await Promise.all(
      weights.map(async (digest) => (await loop.store.head(keys.weights(runId, digest))) !== undefined),
    );
    expect(published).toEqual([true, true, false]);
    expect((await loop.lines(apart as StartedRun)).filter((line) => line.includes('WeightsMissing'))).toEqual([]);
  });

  it.skipIf(!bf16)(
    'gives the same ones in bf16, bound to the instruction set (skipped: needs AVX512_BF16)',
    async () => {
      const made = await essences(firstInBf16);
      expect(made).toHaveLength(3);
      expect(await essences(apartInBf16)).toEqual(made);
      expect(made).not.toEqual(await essences(first));
      const head = await firstInBf16?.log.head();
      expect(head?.profile).toMatchObject({
        id: expect.stringMatching(`^det-bf16-\\d+-${isa}$`) as string,
        compute: 'bf16',
      });
    },
  );

  it('takes a step per mini-batch and epoch, with log-probs from before and of the reference', async () => {
    for (const { batch, update } of await loop.iterations(first as StartedRun)) {
      expect(batch.oldLogProbs).toBe('stored');
      expect(actorOf(update.components).steps.map(({ taken }) => taken)).toEqual(Array.from({ length: 6 }, () => true));
      expect((batch.after.optimizerSteps['actor'] ?? 0) - (batch.before.optimizerSteps['actor'] ?? 0)).toBe(6);
      const tensors = decodeBatch(await getBlob(loop.store, batch.runId, batch.tensors), 'batch');
      // Sampled and recomputed log-probs have the same bits, because the order of sums does not depend on the batch.
      expect(tensors.oldLogProbs_T).toEqual(tensors.rolloutLogProbs_T);
      expect(tensors.refLogProbs_T).toHaveLength(tensors.advantages_T.length);
      const [ref, old] = [tensors.refLogProbs_T, tensors.oldLogProbs_T];
      if (batch.iteration === 1) expect(ref).toEqual(old);
      else expect(ref).not.toEqual(old);
      expect(Number(update.metrics['actor/kl_loss'])).toBeGreaterThanOrEqual(0);
      expect(Number(update.metrics['actor/entropy_loss'] ?? update.metrics['actor/entropy'])).toBeGreaterThan(0);
    }
  });
});
