// @module-tag long
/** A cancelled run's jobs end at once in every stage, and one run's scorers never block another run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';
import { seenRun, until } from './second-worker.ts';

const ended = ['completed', 'failed', 'stopped', 'cancelled'];

const user = new PetrelUser();
beforeAll(async () => {
  const up = await user.petrel('up');
  expect(up.code, up.err).toBe(0);
});
afterAll(() => user.remove());

/** A scorer that records its process id and never answers. */
const hanging = `import { appendFileSync } from 'node:fs';
export function computeScore() {
  appendFileSync(${JSON.stringify(join(user.folder, 'scorers'))}, process.pid + '\\n');
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}
`;

function scorers(): number[] {
  const file = join(user.folder, 'scorers');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
}

const lives = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

/** No validation: its jobs are rollouts, too. */
const trainer = { total_training_steps: 10_000, save_freq: 1_000, val_before_train: false, test_freq: -1 };

/** Two workers with all roles. A run can hold the trainer of one and the reward slots of both. */
const fleet = { pools: { local: { roles: ['trainer', 'rollout', 'reward'], workers: 2, threads: 1 } } };

/** Starts a run whose samples all hang for an hour. Resolves when its jobs hold all reward slots. */
async function startHanging(): Promise<void> {
  user.write('hang.mjs', hanging);
  user.recipe('hangs.yaml', {
    fleet,
    data: { train_batch_size: 32 },
    rollout: { n: 4, max_num_seqs: 8 },
    reward: { scorer: undefined as never, timeout: 3600, custom_reward_function: { path: './hang.mjs' } },
  });
  const run = await user.petrel('run', 'hangs.yaml', '--name', 'hangs', '--detach');
  expect(run.code, run.err).toBe(0);
  await until('jobs that hang', async () =>
    (await jobsInFlight()).filter((job) => job.startsWith('reward-')).length >= 4 ? true : undefined,
  );
}

/** The in-flight jobs that the workers report. */
async function jobsInFlight(): Promise<readonly string[]> {
  const status = (await user.petrel('status', '--json')).json<{
    readonly workers: readonly { readonly jobs: readonly string[] }[];
  }>();
  return status.workers.flatMap(({ jobs }) => jobs);
}

/** Resolves when `ask` finds nothing more. */
const nothing = (what: string, ask: () => readonly unknown[] | Promise<readonly unknown[]>) =>
  until(`an end of ${what}`, async () => (await ask()).length === 0 || undefined);

/** The jobs of the run that have a result. */
async function resultsOf(name: string, stage: string): Promise<readonly string[]> {
  const runs = (await user.petrel('ls', '--json')).json<readonly { readonly runId: string; readonly name: string }[]>();
  const results = join(user.home, 'store/runs', runs.find((run) => run.name === name)?.runId ?? '', 'results');
  return existsSync(results) ? readdirSync(results).filter((job) => job.startsWith(`${stage}-`)) : [];
}

describe.each([
  ['trains', 'update', { actor: { ppo_mini_batch_size: 1, ppo_epochs: 3000, ppo_max_token_len_per_gpu: 64 } }],
  [
    'samples',
    'rollout',
    // A job has the 16,384 responses of one prompt: it takes much longer than the command.
    { data: { train_batch_size: 4 }, rollout: { n: 16_384, temperature: 50 }, actor: { ppo_mini_batch_size: 4 } },
  ],
] as const)('a run that %s', (name, stage, recipe) => {
  it(`leaves the worker at its cancel in ${stage}`, async () => {
    user.recipe(`${name}.yaml`, { fleet, trainer, ...recipe });
    const run = await user.petrel('run', `${name}.yaml`, '--name', name, '--detach');
    expect(run.code, run.err).toBe(0);
    await seenRun(user, name, (now) => ended.includes(now.state) || now.stage === stage);
    const cancelled = await user.petrel('cancel', name, '--yes');
    expect(cancelled.code, cancelled.err).toBe(0);
    await nothing('jobs in flight', jobsInFlight);
    expect((await seenRun(user, name, ({ state }) => ended.includes(state))).state).toBe('cancelled');
    // It was told to leave: a job that comes to its end has a result.
    expect(await resultsOf(name, stage)).toEqual([]);
  });
});

describe('a run whose scorers hang and hold every reward slot', () => {
  beforeAll(startHanging);

  it('does not block another run', async () => {
    user.recipe('goes-on.yaml', { fleet });
    expect((await user.petrel('run', 'goes-on.yaml', '--name', 'goes-on', '--detach')).code).toBe(0);
    const { state } = await seenRun(user, 'goes-on', (now) => ended.includes(now.state));
    expect(state).toBe('completed');
  });

  it('has no scorer soon after it was cancelled', async () => {
    expect(scorers().filter(lives)).not.toEqual([]);
    const cancelled = await user.petrel('cancel', 'hangs', '--yes');
    expect(cancelled.code, cancelled.err).toBe(0);
    await nothing('scorers', () => scorers().filter(lives));
    await nothing('jobs in flight', jobsInFlight);
  });
});
