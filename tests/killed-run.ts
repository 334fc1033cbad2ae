/** Runs whose processes are killed at a named point, and what they must have in common with an undisturbed one. */
import type { Tree } from '../core/recipe/index.ts';
import type { ArmedFault } from '../log/faults/index.ts';
import { essencesOf } from './essences.ts';
import type { Injector } from './inject.ts';
import type { LoopUnderTest, StartedRun } from './loop-under-test.ts';
import { patienceMs } from './patience.ts';

/** Starts a run, kills the process that first reaches the point, and waits until the run has completed. */
export async function killedRun(
  loop: LoopUnderTest,
  injector: Injector,
  keys: Tree,
  at: Pick<ArmedFault, 'point' | 'facts'>,
): Promise<StartedRun> {
  const id = `${at.point}-${loop.runs.size}`;
  injector.arm({ id, ...at, action: 'stand' });
  const run = await loop.start(keys);
  const { identity } = await injector.stands(id, AbortSignal.timeout(patienceMs));
  injector.disarm(id);
  if (identity === undefined) throw new Error(`the process at ${id} is gone`);
  await injector.kill([{ name: `the process at ${id}`, identity }]);
  await loop.reaches(run, 'completed');
  return run;
}

/** The values on which two equal runs must agree, by iteration. */
export async function essences(loop: LoopUnderTest, run: StartedRun) {
  return essencesOf(await loop.iterations(run));
}
