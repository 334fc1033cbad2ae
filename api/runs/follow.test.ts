/** Following runs in a store, with the local stack down. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import type { BuiltRun } from '../../tests/run-builder.ts';
import { followRun } from './follow.ts';
import type { FollowOptions, RunProgress } from './follow.ts';

const cli = cliHome();
let running: BuiltRun;
let failed: BuiltRun;
let elsewhere: BuiltRun;
beforeAll(async () => {
  const store = await cli.store();
  running = await buildRun(store, {
    name: 'a',
    done: 4,
    iterations: 9,
    evaluations: [0, 4],
    status: { state: 'running' },
  });
  failed = await buildRun(store, { name: 'b', done: 1, iterations: 9, status: { state: 'failed' } });
  elsewhere = await buildRun(store, {
    name: 'c',
    done: 1,
    iterations: 9,
    owner: 'other',
    status: { state: 'running' },
  });
});
afterAll(() => cli.remove());

/** The first frame that shows committed iterations; the following ends with it. */
async function look({ log }: BuiltRun, options: Pick<FollowOptions, 'after'> = {}) {
  const leave = new AbortController();
  const frames: RunProgress[] = [];
  const state = await followRun(log, cli, {
    ...options,
    signal: leave.signal,
    onProgress: (frame) => {
      frames.push(frame);
      if (frame.iteration > 0) leave.abort();
    },
  });
  return { state, frame: frames.at(-1) };
}

describe('what is known of a run with the stack down', () => {
  it('is what the store tells: rewards, the validation, warnings, and that the stack must be brought up', async () => {
    const { state, frame } = await look(running);
    expect(state).toBe('running');
    expect(frame).toMatchObject({
      iteration: 4,
      iterations: 9,
      rewards: [0.5, 0.5, 0.5, 0.5],
      validationMeasure: 'accuracy',
    });
    expect(frame?.stuck).toContain('petrel up');
  });

  it('needs no stack here when another one drives the run', async () => {
    expect((await look(elsewhere)).frame).not.toHaveProperty('stuck');
  });

  it('is not the state from before it was resumed', async () => {
    expect(await look(failed)).toMatchObject({ state: 'failed', frame: { state: 'failed' } });
    const n = (await failed.log.status.newest())?.n ?? 0;
    expect(await look(failed, { after: n })).toMatchObject({ state: 'queued', frame: { iteration: 1 } });
  });
});
