import { afterAll, beforeAll, expect, it } from 'vitest';
import { cliHome } from '../tests/cli.ts';
import { buildRun } from '../tests/run-builder.ts';
import type { BuiltRun } from '../tests/run-builder.ts';
import { findRun, metricRows, openStack } from './index.ts';

const user = cliHome();
const stack = openStack({ home: user.home });
let built: BuiltRun;
beforeAll(async () => {
  built = await buildRun(await user.store(), { name: 'toy', done: 4, evaluations: [0, 4], checkpoints: [2, 4] });
});
afterAll(() => user.remove());

it('a run gives its metrics, samples, checkpoints and verdict to a program', async () => {
  const run = await stack.run('toy');
  expect(run.id).toBe(built.runId);
  expect((await run.metrics(2)).map(({ iteration }) => iteration)).toEqual([3, 4]);
  expect((await run.samples()).map(({ iteration }) => iteration)).toEqual([4, 4, 4, 4]);
  expect((await run.samples({ iteration: 0, validation: true }))[0]).toMatchObject({ iteration: 0 });
  expect((await run.checkpoints()).map(({ iteration }) => iteration)).toEqual([2, 4]);
  expect(await run.logLines(10)).toEqual([]);
  expect(await run.verify()).toMatchObject({ runId: built.runId, faults: [] });
});

it('an iteration that a run does not have is named with those that it has', async () => {
  const run = await stack.run('toy');
  await expect(run.samples({ iteration: 9 })).rejects.toMatchObject({
    code: 'NotFound',
    hint: 'there are: 1, 2, 3, 4',
  });
});

it('the functions take the context of a stack', async () => {
  const { log } = await findRun('toy', stack.context);
  expect(await metricRows(log, 1)).toHaveLength(1);
});
