// @module-tag long
/**
 * Two runs on one trainer whose rollouts take longer than every time limit of the stack: nobody steals the trainer, and
 * no iteration is computed twice. The samplers are slow (PETREL_PACE), and the limits are those of a local stack.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timings } from '../../core/wire/messages.ts';
import { paceVariable } from '../../workers/engine/engines/native/paced-sampler.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const before = process.env[paceVariable];
beforeAll(() => {
  process.env[paceVariable] = '5';
  return loop.up(separatePools);
});
afterAll(async () => {
  if (before === undefined) delete process.env[paceVariable];
  else process.env[paceVariable] = before;
  await loop.remove();
});

const steps = 3;

/** Starts two runs together. */
async function pair(share: 'queue' | 'turns'): Promise<[StartedRun, StartedRun]> {
  const recipe = { trainer: { total_training_steps: steps, share } };
  const both: [StartedRun, StartedRun] = [await loop.start(recipe), await loop.start(recipe)];
  await Promise.all(both.map((run) => loop.reaches(run, 'completed')));
  return both;
}

const metric = (all: readonly Iteration[], name: string): number[] =>
  all.map(({ batch, update }) => Number(update.timings[name] ?? batch.timings[name]));
const committed = (all: readonly Iteration[]): string[] => all.map(({ update }) => update.writer.at);

/** How often the trainer went from one run to the other. */
function changes(first: readonly Iteration[], second: readonly Iteration[]): number {
  const order = [...committed(first).map((at) => [at, 1]), ...committed(second).map((at) => [at, 2])].sort();
  return order.filter(([, run], i) => i > 0 && run !== order[i - 1]?.[1]).length;
}

describe('two runs on one trainer, with rollouts longer than every time limit (seed 42)', () => {
  let alone: string[];

  it('share: queue, train one after the other, without a replay', async () => {
    const [first, second] = await pair('queue');
    const [a, b] = [await loop.iterations(first), await loop.iterations(second)];
    const limits = [timings.loopback.ackWaitMs, timings.loopback.watchdogMs, timings.loopback.presenceMs];
    for (const time of metric(a, 'timing_s/gen')) expect(time * 1_000).toBeGreaterThan(Math.max(...limits));
    expect(changes(a, b)).toBe(1);
    for (const all of [a, b]) {
      expect(metric(all, 'perf/replayed_iterations')).toEqual([0, 0, 0]);
      expect(metric(all, 'perf/state_loads').slice(1)).toEqual([0, 0]);
    }
    alone = await loop.states(first);
    expect(await loop.states(second)).toEqual(alone);
  });

  it('share: turns, train in turn, with one load for each turn and without a replay', async () => {
    const [first, second] = await pair('turns');
    const [a, b] = [await loop.iterations(first), await loop.iterations(second)];
    expect(changes(a, b)).toBeGreaterThan(2);
    for (const [run, all] of [
      [first, a],
      [second, b],
    ] as const) {
      expect(await loop.states(run)).toEqual(alone);
      expect(metric(all, 'perf/replayed_iterations')).toEqual([0, 0, 0]);
      const loads = metric(all, 'perf/state_loads').slice(1);
      expect(Math.max(...loads)).toBe(1);
      const turns = await loop.said(run, /gives its trainer to a run that waits/);
      expect(turns.length).toBeGreaterThanOrEqual(loads.filter((one) => one === 1).length);
    }
  });
});
