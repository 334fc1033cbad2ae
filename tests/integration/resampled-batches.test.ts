/** Batches that need more than the samples of their prompts: PF-PPO draws them again, ReMax adds greedy responses. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess, ScoreFunction } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
beforeAll(() => loop.up());
afterAll(() => loop.remove());

const short: Tree = { trainer: { total_training_steps: 3, save_freq: 2 } };

const tensorsOf = async ({ log }: RunInProcess, digest: string) =>
  decodeBatch(await getBlob(loop.store, log.runId, digest), digest);

describe('policy filtration for PPO (seed 42)', () => {
  const filtered: Tree = { ...short, algorithm: { adv_estimator: 'gae', lam: 0.95, use_pf_ppo: true } };
  let undisturbed: RunInProcess;
  beforeAll(async () => {
    undisturbed = await loop.completed(filtered);
  });

  it('trains on as many samples as the batch has, the ones with a reward more often', async () => {
    for (const { batch } of undisturbed.iterations) {
      const { microSamples, rewards_S } = await tensorsOf(undisturbed, batch.tensors);
      expect(microSamples).toHaveLength(16);
      expect(batch.metrics['training/drawn_samples']).toBe(new Set(microSamples).size);
      const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
      expect(mean(Array.from(microSamples, (b) => rewards_S[b] ?? 0))).toBeGreaterThan(mean([...rewards_S]));
    }
  });

  it('draws other samples in each iteration, and the same in another run', async () => {
    const made = undisturbed.iterations;
    const drawn = await Promise.all(
      made.map(async ({ batch }) => (await tensorsOf(undisturbed, batch.tensors)).microSamples),
    );
    expect(new Set(drawn.map(String)).size).toBe(made.length);
    const again = await loop.completed(filtered);
    expect(essencesOf(again.iterations)).toEqual(essencesOf(made));
  });
});

describe('ReMax (seed 42)', () => {
  const compared: Tree = { ...short, algorithm: { adv_estimator: 'remax' }, rollout: { n: 1 } };
  let undisturbed: RunInProcess;
  beforeAll(async () => {
    undisturbed = await loop.completed(compared);
  });

  it('subtracts the score of a greedy response to the same prompt', async () => {
    for (const { batch } of undisturbed.iterations) {
      expect(batch.baselines).toHaveLength(2); // a rollout of four prompts, and its rewards
      const { advantages_T, rewards_S, scoredOffsets_S1 } = await tensorsOf(undisturbed, batch.tensors);
      const baselines = Array.from(rewards_S, (reward, s) => reward - (advantages_T[scoredOffsets_S1[s] ?? 0] ?? 0));
      const mean = baselines.reduce((sum, one) => sum + one, 0) / baselines.length;
      expect(batch.metrics['critic/baselines/mean']).toBeCloseTo(mean, 6);
    }
  });

  it('leaves a prompt out whose greedy response could not be scored', async () => {
    const refusesOdd: ScoreFunction = ({ solutionStr }) => {
      if ([...solutionStr].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 2) throw new Error('odd');
      return solutionStr.length;
    };
    const failing = { ...compared, reward: { max_failed_fraction: 1 }, trainer: { total_training_steps: 4 } };
    const { iterations } = await loop.completed(failing, { score: refusesOdd });
    const reasons = iterations.flatMap(({ batch }) => batch.draws.map(({ reason }) => reason));
    expect(reasons.some((reason) => /^its greedy response has no score: .*odd/.test(reason ?? ''))).toBe(true);
  });
});
