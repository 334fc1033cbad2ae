// @module-tag long
/**
 * Whole runs on engines that are not the native one: in child processes, two micro-batches at once, states named by
 * their lineage, a sampler in a process of its own that draws its own random bits. They are killed in the middle of
 * their work.
 */
import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actorOf } from '../../core/records/components.ts';
import type { PackedBatch } from '../../core/ports/policy.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';
import { essencesOf } from '../essences.ts';
import { childEngines } from './child-engine.ts';
import type { ChildOptions, Computing } from './child-engine.ts';

const recipe = {
  trainer: { engine: 'torch', total_training_steps: 4, save_freq: 2 },
  rollout: { name: 'vllm' },
  deterministic: false,
};

describe('a run on two engines in child processes', () => {
  const children: { readonly child: ChildProcess; readonly is: 'policy' | 'sampler' }[] = [];
  const onStart = (child: ChildProcess, is: 'policy' | 'sampler') => void children.push({ child, is });
  const passes: (readonly PackedBatch[])[] = [];
  const loop = new InProcessLoop(sevens, {
    engines: [
      childEngines({
        name: 'torch',
        lanes: 2,
        lineage: true,
        seeded: true,
        onStart,
        onForward: (some) => passes.push(some),
      }),
      childEngines({ name: 'vllm', seeded: true, onStart }),
    ],
  });
  beforeAll(() => loop.up());
  afterAll(() => loop.remove());

  const newest = (is: 'policy' | 'sampler') => children.filter((one) => one.is === is).at(-1)?.child;
  const statesOf = ({ iterations }: RunInProcess) =>
    iterations.map(({ update }) => actorOf(update.components).stateDigest);

  it('trains, and names each state by the update that made it', async () => {
    const run = await loop.completed(recipe);
    expect(run.iterations).toHaveLength(4);
    for (const { update } of run.iterations) expect(actorOf(update.components).incarnation).toMatch(/^[0-9a-f-]+\.1$/);
    expect(new Set(statesOf(run)).size).toBe(4);
    expect(passes.some(({ length }) => length === 2)).toBe(true);
    // What the sampler said of a token came with it to each forward pass.
    for (const { targets_P, columns_P } of passes.flat())
      expect([...(columns_P?.['routes']?.data ?? [])]).toEqual([...(targets_P ?? [])].flatMap((t) => [t, t + 1]));
    const head = await run.log.head();
    expect(head?.profile).toMatchObject({ engine: 'torch', naming: 'lineage', id: 'any' });
  });

  it.each(['policy', 'sampler'] as const)('goes on when its %s is killed four times', async (is) => {
    let [scored, kills] = [0, 0];
    const run = await loop.completed(recipe, {
      score: (input) => {
        scored += 1;
        if ([5, 21, 37].includes(scored) && newest(is)?.kill('SIGKILL')) kills += 1;
        return sevens(input);
      },
      committed: async (position) => {
        if (position === 3 && newest(is)?.kill('SIGKILL')) kills += 1;
      },
    });
    expect(kills).toBeGreaterThan(2);
    expect((await run.log.head())?.position).toBe(4);
  });
});

describe('a run whose engine dies in the middle of a call', () => {
  let planned: { readonly call: Computing; readonly kills: readonly number[] } | undefined;
  let [calls, killed] = [0, 0];
  const trainer: Partial<ChildOptions> = {
    name: 'torch',
    lanes: 2,
    killIn: (call) => {
      if (call !== planned?.call) return false;
      calls += 1;
      return planned.kills.includes(calls);
    },
    onStart: (child) => child.once('exit', (_, signal) => void (killed += signal === 'SIGKILL' ? 1 : 0)),
  };
  const repeated = new InProcessLoop(sevens, {
    engines: [childEngines(trainer), childEngines({ name: 'vllm' })],
  });
  const byLineage = new InProcessLoop(sevens, {
    engines: [
      childEngines({ ...trainer, lineage: true, seeded: true }),
      childEngines({ name: 'vllm', lineage: true, seeded: true }),
    ],
  });
  let undisturbed: RunInProcess;
  beforeAll(async () => {
    await Promise.all([repeated.up(), byLineage.up()]);
    undisturbed = await repeated.completed({ ...recipe, deterministic: true });
  });
  afterAll(() => Promise.all([repeated.remove(), byLineage.remove()]));

  const disturbed = async (call: Computing, run: () => Promise<RunInProcess>) => {
    [calls, killed] = [0, 0];
    planned = { call, kills: [2, 4] };
    try {
      return await run();
    } finally {
      planned = undefined;
    }
  };
  const points: readonly Computing[] = ['score', 'forward', 'backward', 'step'];

  it.each(points)('has the state of an undisturbed one after two kills in: %s', async (call) => {
    const run = await disturbed(call, () => repeated.completed({ ...recipe, deterministic: true }));
    expect(killed).toBe(2);
    expect(essencesOf(run.iterations)).toEqual(essencesOf(undisturbed.iterations));
  });

  it.each(points)('goes on after two kills where states are named by lineage, in: %s', async (call) => {
    const run = await disturbed(call, () => byLineage.completed(recipe));
    expect(killed).toBe(2);
    expect((await run.log.head())?.position).toBe(4);
    expect(new Set(run.iterations.map(({ update }) => actorOf(update.components).stateDigest)).size).toBe(4);
  });
});
