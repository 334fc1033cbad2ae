/** Tests that a run ends in the same bits whatever happens to its processes, and wherever its roles are. */
import { expect, it } from 'vitest';
import type { Tree } from '../core/recipe/index.ts';
import type { ArmedFault } from '../log/faults/index.ts';
import type { Injector } from './inject.ts';
import { essences, killedRun } from './killed-run.ts';
import { onePool, separatePools } from './loop-under-test.ts';
import type { LoopUnderTest, StartedRun } from './loop-under-test.ts';

export interface UndisturbedRun {
  readonly loop: LoopUnderTest;
  readonly injector: Injector;
  readonly recipe: Tree;
  readonly undisturbed: StartedRun;
}

type Place = Pick<ArmedFault, 'point' | 'facts'>;

/**
 * What a run is killed at: iterations 3, 4 and 5. Of the runs that kill-algorithms.test.ts kills anywhere too, only the
 * first.
 */
const usualPlaces: readonly (readonly [string, Place])[] = [
  ['while it makes the batch', { point: 'job.begin', facts: { stage: 'advantage', iteration: 3 } }],
  ['before it commits the batch', { point: 'decide.before', facts: { kind: 'batch', iteration: 4 } }],
  ['between two optimiser steps', { point: 'write.step', facts: { iteration: 5, step: 0 } }],
];

/** `of`: called in each test. `places`: where a process is killed, with the words of the test's title. */
export function testSameBits(
  of: () => UndisturbedRun,
  places: readonly (readonly [string, Place | (() => Place)])[] = usualPlaces,
): void {
  it.each(places)('ends in the same bits when a process is killed %s', async (_, place) => {
    const { loop, injector, recipe, undisturbed } = of();
    const run = await killedRun(loop, injector, recipe, typeof place === 'function' ? place() : place);
    expect(await essences(loop, run)).toEqual(await essences(loop, undisturbed));
  });

  it('ends in the same bits when roles are in processes of their own', async () => {
    const { loop, recipe, undisturbed } = of();
    await loop.up(separatePools);
    expect(await essences(loop, await loop.completed(recipe))).toEqual(await essences(loop, undisturbed));
    await loop.up(onePool);
  });
}
