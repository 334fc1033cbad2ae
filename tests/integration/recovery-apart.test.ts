import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

/** Longer responses and a scorer that takes its time, so that each stage can be hit. */
const recipe = () => ({
  data: { max_response_length: 40 },
  actor: { ppo_max_token_len_per_gpu: 256 },
  reward: {
    custom_reward_function: {
      path: loop.scorer('slow-sevens', `const until = Date.now() + 20; while (Date.now() < until); return [...solutionStr].filter((c) => c === '7').length / Math.max(1, solutionStr.length);`),
      deterministic: true,
    },
  },
  trainer: { total_training_steps: 4, save_freq: 2 },
});

const loop = new LoopUnderTest();
let undisturbed: string[];
beforeAll(async () => {
  await loop.up(separatePools);
  const run = await loop.start(recipe());
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
});
afterAll(() => loop.remove());

/** The run is seen at work on this stage after its second iteration. */
async function at(run: StartedRun, stage: string): Promise<void> {
  await loop.passes(run, 2);
  await loop.until(run, stage, async () => ((await loop.client.workflow.getHandle(run.runId).query('live')) as { stage: string }).stage === stage);
}

describe('a deterministic run with a process for every role (seed 42) goes on by itself to the same weights', () => {
  it.each([
    ['sample-1', 'rollout'],
    ['score-1', 'rollout'],
    ['train-1', 'rollout'],
    ['temporal', 'rollout'],
  ])('when %s is killed during %s', async (victim, stage) => {
    const run = await loop.start(recipe());
    await at(run, stage);
    await kill(loop.process(victim));
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });
});
