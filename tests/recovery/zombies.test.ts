// @module-tag long
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { builtProgram } from '../../infra/home.ts';
import { stackVariable } from '../../infra/stack/child-spec.ts';
import { stackFile } from '../../infra/stack/state.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import type { ArmedFault } from '../../log/faults/index.ts';
import type { Standing } from '../inject.ts';
import { onePool } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { Bed, difference } from './bed.ts';
import { patienceMs } from '../patience.ts';

const bed = new Bed();
const { loop, injector } = bed;
afterAll(() => bed.remove());
afterEach(() => injector.disarmAll());

const twoOfAll: readonly WorkerPool[] = [
  { name: 'twin', count: 2, roles: ['trainer', 'rollout', 'reward'], threads: 1 },
];
const twoTrainers: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 2, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];

const patience = () => AbortSignal.timeout(patienceMs);

/** Starts a run, and stops a process of it at this point. */
async function standing(fault: Pick<ArmedFault, 'point' | 'facts'>): Promise<{ run: StartedRun; zombie: Standing }> {
  const run = await loop.create(bed.recipe('grpo'));
  injector.arm({ id: run.runId, ...fault, action: 'stand' });
  await loop.drive(run);
  return { run, zombie: await injector.stands(run.runId, patience()) };
}

/** Resumes the stopped process. Resolves when it has tried to write what other processes have written. */
async function wake(
  run: StartedRun,
  zombie: Standing,
  attempt: Pick<ArmedFault, 'point' | 'facts'>,
  refused: RegExp,
): Promise<void> {
  injector.arm({ id: `${run.runId}-late`, ...attempt, process: zombie.process, action: 'note' });
  if (zombie.identity === undefined) throw new Error(`${zombie.process} is gone`);
  expect(injector.thaw(zombie.identity)).toBe(true);
  expect((await injector.fired(`${run.runId}-late`, patience())).pid).toBe(zombie.pid);
  expect((await loop.said(run, refused)).length).toBeGreaterThan(0);
}

/** Every object of the run, except log lines, with its size and time of writing. Temporary files are no objects. */
function objects({ runId }: StartedRun): Record<string, string> {
  const root = join(loop.home, 'store', 'runs', runId);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (file) => file.isFile() && !file.name.startsWith('.tmp-'),
  );
  const paths = files
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => !path.startsWith(join(root, 'logs')));
  return Object.fromEntries(
    paths.sort().map((path) => [path.slice(root.length), `${statSync(path).size} ${statSync(path).mtimeMs}`]),
  );
}

async function sameAsUndisturbed(run: StartedRun): Promise<void> {
  expect(difference(await bed.essence(run), await bed.reference('grpo'))).toBeUndefined();
}

it('a rollout worker that wakes after the run has ended finds its result refused, and changes nothing', async () => {
  await bed.up(twoTrainers);
  const point = { facts: { stage: 'rollout', iteration: 2 } };
  const { run, zombie } = await standing({ point: 'result.before', ...point });
  await loop.reaches(run, 'completed');
  const before = objects(run);
  await wake(
    run,
    zombie,
    { point: 'result.after', ...point },
    new RegExp(`${zombie.process}: rollout .*late result refused`),
  );
  expect(objects(run)).toEqual(before);
  await sameAsUndisturbed(run);
});

it('a trainer that wakes during an update, after another has finished the run, changes nothing', async () => {
  await bed.up(twoTrainers);
  // Before the first checkpoint: a trainer that wakes completes the one that it was writing.
  const { run, zombie } = await standing({ point: 'write.step', facts: { iteration: 2, step: 1 } });
  await loop.reaches(run, 'completed');
  const before = objects(run);
  await wake(
    run,
    zombie,
    { point: 'result.after', facts: { stage: 'update', iteration: 1 } },
    new RegExp(`${zombie.process}: update .*late result refused`),
  );
  expect(objects(run)).toEqual(before);
  await sameAsUndisturbed(run);
});

it('a worker with all roles that wakes during an update continues to serve the run, which stays the same', async () => {
  await bed.up(twoOfAll);
  const { run, zombie } = await standing({ point: 'write.step', facts: { iteration: 2, step: 0 } });
  await loop.passes(run, 3);
  await wake(
    run,
    zombie,
    { point: 'result.after', facts: { stage: 'update', iteration: 1 } },
    new RegExp(`${zombie.process}: update .*late result refused`),
  );
  await loop.reaches(run, 'completed');
  await sameAsUndisturbed(run);
});

it('a control process that wakes before a decision that another has made is refused, and the run stays the same', async () => {
  await bed.up(onePool);
  const { run, zombie } = await standing({ point: 'decide.before', facts: { kind: 'batch', iteration: 3 } });
  const second = await secondControl();
  try {
    await loop.reaches(run, 'completed');
    const before = objects(run);
    await wake(
      run,
      zombie,
      { point: 'decide.after', facts: { kind: 'batch', iteration: 3 } },
      /batch\.json: late decision refused/,
    );
    expect(objects(run)).toEqual(before);
    await sameAsUndisturbed(run);
  } finally {
    second.kill('SIGTERM');
    await once(second, 'exit');
  }
});

/**
 * The supervisor takes a stopped process for a living one, so the test starts the second one by hand, as on another
 * machine of the stack.
 */
async function secondControl(): Promise<ChildProcess> {
  const env = { ...process.env, PETREL_HOME: loop.home, [stackVariable]: stackFile(loop.home) };
  const child = spawn(process.execPath, [builtProgram('control')], { env, stdio: 'ignore' });
  await once(child, 'spawn');
  return child;
}
