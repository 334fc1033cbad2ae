// @module-tag engines
/** Whole runs on torch, sampled by `hf`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChildProcess } from 'node:child_process';
import { actorOf } from '../../core/records/components.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';
import { hfHere, torchHere } from './engines-here.ts';

const recipe = {
  trainer: { engine: 'torch', fsdp_size: 2, total_training_steps: 3, save_freq: 2 },
  rollout: { name: 'hf' },
  deterministic: false,
};

describe('a run on torch', () => {
  const ranks: ChildProcess[] = [];
  const onStart = (child: ChildProcess) => void ranks.push(child);
  const loop = new InProcessLoop(sevens, { engines: [torchHere({ onStart }), hfHere()] });
  beforeAll(() => loop.up());
  afterAll(() => loop.remove());
  const statesOf = ({ iterations }: RunInProcess) =>
    iterations.map(({ update }) => actorOf(update.components).stateDigest);

  it('trains, and names each state by the update that made it', async () => {
    const run = await loop.completed(recipe);
    expect(run.iterations).toHaveLength(3);
    expect(new Set(statesOf(run)).size).toBe(3);
    expect((await run.log.head())?.profile).toMatchObject({ engine: 'torch', naming: 'lineage', id: 'any' });
  });

  it('goes on when a rank is killed', async () => {
    let kills = 0;
    const run = await loop.completed(recipe, {
      committed: async (position) => {
        if (position === 1 && ranks.at(-1)?.kill('SIGKILL')) kills += 1;
      },
    });
    expect(kills).toBe(1);
    expect((await run.log.head())?.position).toBe(3);
  });
});

describe('a deterministic run on torch', () => {
  const ranks: ChildProcess[] = [];
  const loop = new InProcessLoop(sevens, {
    engines: [torchHere({ onStart: (child) => void ranks.push(child) }), hfHere()],
  });
  beforeAll(() => loop.up());
  afterAll(() => loop.remove());

  it('has the bits of an undisturbed one when a rank is killed after each update', async () => {
    const given = {
      kind: 'sft',
      trainer: { engine: 'torch', fsdp_size: 2, total_training_steps: 3, save_freq: 2 },
      deterministic: true,
    };
    const states = async (options: Parameters<InProcessLoop['completed']>[1] = {}) => {
      const { iterations } = await loop.completed(given, options);
      return iterations.map(({ update }) => actorOf(update.components).stateDigest);
    };
    const undisturbed = await states();
    let kills = 0;
    const killed = await states({ committed: async () => void (kills += ranks.at(-1)?.kill('SIGKILL') ? 1 : 0) });
    expect(kills).toBeGreaterThan(1);
    expect(killed).toEqual(undisturbed);
  });
});
