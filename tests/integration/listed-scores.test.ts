/** The reward manager batch: a call of the scorer gets all responses to a prompt. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up(onePool));
afterAll(() => loop.remove());

const n = 3;

/** A response scores the share of its list that comes before it. */
function recipe(path: string): Tree {
  return {
    rollout: { n },
    reward: {
      reward_manager: { name: 'batch' },
      custom_reward_function: { path, deterministic: true },
      num_workers: 2,
      timeout: 30,
    },
    trainer: { total_training_steps: 2 },
  };
}

const metricsOf = async (run: StartedRun) => (await loop.iterations(run)).map(({ batch }) => batch.metrics);

describe('a run with the reward manager batch (seed 42)', () => {
  let typescript: StartedRun;
  beforeAll(async () => {
    const path = join(loop.home, 'listed.ts');
    writeFileSync(
      path,
      `export const computeScore = (all: { solutionStr: string }[]) =>
  all.map(({ solutionStr }) => ({
    score: all.filter((other) => other.solutionStr < solutionStr).length / all.length,
    listed: all.length,
  }));`,
    );
    typescript = await loop.completed(recipe(path));
  });

  it('passes all responses to a prompt, and no others, to one call', async () => {
    for (const metrics of await metricsOf(typescript)) {
      expect(metrics['reward_extra/listed/mean']).toBe(n);
      expect(metrics['critic/score/max']).toBeGreaterThan(0);
      expect(metrics['critic/score/max']).toBeLessThan(1);
    }
  });

  it('is the same with a scorer in Python, and when roles are in processes of their own', async () => {
    const path = join(loop.home, 'listed.py');
    writeFileSync(
      path,
      `def compute_score(data_sources, solution_strs, ground_truths, extra_infos):
    def before(text):
        return sum(other < text for other in solution_strs)
    return [{"score": before(text) / len(solution_strs), "listed": len(solution_strs)} for text in solution_strs]
`,
    );
    await loop.up(separatePools);
    const python = await loop.completed(recipe(path));
    expect(await loop.states(python)).toEqual(await loop.states(typescript));
    await loop.up(onePool);
  });

  it('pauses when its calls fail, with the reason', async () => {
    const path = join(loop.home, 'broken.ts');
    writeFileSync(path, 'export const computeScore = (all: unknown[]) => all.length === 1 ? [0] : [1];');
    const run = await loop.start(recipe(path));
    const { reason } = await loop.reaches(run, 'paused');
    expect(JSON.stringify(reason)).toContain(`got ${n} responses and gave 1 scores`);
  });
});
