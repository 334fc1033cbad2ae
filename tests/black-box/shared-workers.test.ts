// @module-tag long
/** Several runs on the same workers: which run gets the trainer, and whether they disturb each other's rollouts. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Injector } from '../inject.ts';
import { PetrelUser } from './petrel.ts';
import { patienceMs } from '../patience.ts';

async function until(probe: () => boolean, what: () => string): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!probe()) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms for ${what()}`);
    await delay(50);
  }
}

interface Status {
  readonly state: string;
  readonly at: string;
}

/** Status entries of a run, by its files in the store. */
function statusesOf(user: PetrelUser, runId: string): Status[] {
  const folder = join(user.home, 'store/runs', runId, 'status');
  if (!existsSync(folder)) return [];
  const numbers = readdirSync(folder).flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []);
  return numbers
    .map(Number)
    .sort((a, b) => a - b)
    .map((n) => JSON.parse(readFileSync(join(folder, `${n}.json`), 'utf8')));
}

const stateOf = (user: PetrelUser, runId: string) => statusesOf(user, runId).at(-1)?.state;

async function start(user: PetrelUser, recipe: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, out, err } = await user.petrelWith({ env }, 'run', recipe, '--detach', '--json');
  expect(code, err).toBe(0);
  return JSON.parse(out).runId;
}

async function linesOf(user: PetrelUser, runId: string): Promise<string[]> {
  return (await user.petrel('logs', runId)).out.split('\n');
}

describe('three runs on one trainer, whose scorers take longer than any idle time', () => {
  const user = new PetrelUser();
  const runs: string[] = [];
  afterAll(() => user.remove());

  beforeAll(async () => {
    // In the workers' clock, each call of the scorer takes a minute: they add a minute for each byte that the scorer
    // has written.
    const minutes = user.write('minutes', '');
    const clock = user.write(
      'clock.cjs',
      `if (process.env.PETREL_CHILD_KIND === 'worker') {
  const { statSync } = require('node:fs');
  const now = Date.now;
  Date.now = () => now() + 60_000 * statSync(${JSON.stringify(minutes)}).size;
}
`,
    );
    user.write(
      'slow.mjs',
      `import { appendFileSync } from 'node:fs';
export function computeScore() {
  appendFileSync(${JSON.stringify(minutes)}, '.');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  return Math.random();
}
`,
    );
    user.recipe('recipe.yaml', {
      data: { train_batch_size: 2 },
      rollout: { n: 2 },
      actor: { ppo_mini_batch_size: 2 },
      reward: { custom_reward_function: { path: './slow.mjs', name: 'computeScore' } },
      fleet: { pools: { local: { roles: ['trainer', 'rollout', 'reward'], workers: 1, threads: 1 } } },
      trainer: { total_training_steps: 20, save_freq: -1 },
    });
    for (let i = 0; i < 3; i++) {
      const run = await start(user, 'recipe.yaml', { PETREL_PRELOAD: clock });
      runs.push(run);
      if (i === 0)
        await until(
          () => stateOf(user, run) === 'running',
          () => `${run} to be running`,
        );
    }
    await until(
      () => runs.every((run) => ['completed', 'failed'].includes(stateOf(user, run) ?? '')),
      () => runs.map((run) => `${run}: ${stateOf(user, run)}`).join(', '),
    );
  });

  it('train one after the other, in the order in which they were started', () => {
    const events = runs.flatMap((run, i) =>
      statusesOf(user, run)
        .filter(({ state }) => state !== 'queued')
        .map(({ state, at }) => ({ at, text: `run ${i + 1} ${state}` })),
    );
    const inOrder = events.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).map(({ text }) => text);
    expect(inOrder).toEqual([1, 2, 3].flatMap((i) => [`run ${i} running`, `run ${i} completed`]));
  });

  it('load their states once each, because no run takes the trainer away', async () => {
    const lines = (await Promise.all(runs.map((run) => linesOf(user, run)))).flat();
    expect(lines.filter((line) => /loaded checkpoint|replayed iteration/.test(line))).toEqual([]);
  });
});

describe('two runs on one base whose rollouts need different sizes', () => {
  const user = new PetrelUser();
  afterAll(() => user.remove());

  it('share a rollout worker: the generation is replaced at most once', async () => {
    const rows = 256;
    const faults = join(user.folder, 'faults');
    // The rollout worker stops at its first token, so that the jobs of both runs exist when it continues.
    const injector = new Injector(user.home, faults);
    injector.arm({ id: 'first', point: 'sample.token', process: 'sample-1', action: 'stand' });
    const recipe = (file: string, slots: number, length: number) =>
      user.recipe(
        file,
        {
          data: { train_batch_size: rows, max_response_length: length },
          rollout: { n: 8, max_num_seqs: slots },
          actor: { ppo_mini_batch_size: rows, ppo_max_token_len_per_gpu: 1024 },
          fleet: {
            pools: {
              train: { roles: ['trainer'], workers: 2, threads: 1 },
              sample: { roles: ['rollout'], workers: 1, threads: 1 },
              score: { roles: ['reward'], workers: 1, threads: 1 },
            },
          },
          trainer: { total_training_steps: 1, save_freq: -1 },
        },
        rows,
      );
    recipe('wide.yaml', 16, 100);
    recipe('long.yaml', 4, 200);
    const runs = await Promise.all(
      ['wide.yaml', 'long.yaml'].map((file) => start(user, file, { PETREL_FAULTS: faults })),
    );
    await injector.stands('first', AbortSignal.timeout(patienceMs));
    await until(
      () => runs.every((run) => stateOf(user, run) === 'running'),
      () => `runs that are ${runs.map((run) => stateOf(user, run)).join(', ')}`,
    );
    injector.disarmAll();
    injector.close();
    const interrupted = async () =>
      (await Promise.all(runs.map((run) => linesOf(user, run))))
        .flat()
        .filter((line) => line.includes('The weights changed while samples were in flight'));
    for (;;) {
      const ended = runs.every((run) => ['completed', 'failed'].includes(stateOf(user, run) ?? ''));
      const lines = await interrupted();
      // A new generation interrupts every in-flight job of one run. No job is interrupted twice.
      const jobs = lines.map((line) => /rollout (\S+):/.exec(line)?.[1]);
      expect(jobs.length, lines.join('\n')).toBe(new Set(jobs).size);
      if (ended) break;
    }
    expect(runs.map((run) => stateOf(user, run))).toEqual(['completed', 'completed']);
  });
});
