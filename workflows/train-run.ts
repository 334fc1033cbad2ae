/** Reinforcement learning: rollout and reward in parallel, then advantage, then update. */
import type { RunCarry, RunOutcome } from '../core/wire/workflow.ts';
import { driveRun, stages } from './drive.ts';

export async function trainRun(carry: RunCarry): Promise<RunOutcome> {
  return driveRun(carry, async (run, at) => {
    at('rollout');
    await Promise.all([stages.rollout(run), stages.reward(run)]);
    at('advantage');
    await stages.advantage(run);
  });
}
