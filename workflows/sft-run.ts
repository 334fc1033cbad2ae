/** Supervised fine-tuning: the batch is made from dataset rows, without rollouts. */
import type { RunCarry, RunOutcome } from '../core/wire/workflow.ts';
import { driveRun, stages } from './drive.ts';

export async function sftRun(carry: RunCarry): Promise<RunOutcome> {
  return driveRun(carry, async (run, at) => {
    at('advantage');
    await stages.advantage(run);
  });
}
