/**
 * What retention may remove and what it must keep, over random interleavings of everything that a run and its janitors
 * do.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storeContract } from '../../tests/contracts/store.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { bestCheckpoint } from '../run/best-checkpoint.ts';
import type { BestCheckpoint } from '../run/best-checkpoint.ts';
import { graceMs, World } from './world.test-support.ts';

storeContract('memory', async () => {
  const store = new MemoryStore();
  return { store, again: async () => store };
});

/** One event. */
interface Step {
  readonly what: string;
  readonly do: (world: World) => Promise<unknown>;
}

const step = (what: string, run: (world: World) => unknown): fc.Arbitrary<Step> =>
  fc.constant({ what, do: async (world: World) => run(world), toString: () => what });
const some = (what: string, most: number, run: (world: World, n: number) => Promise<unknown>): fc.Arbitrary<Step> =>
  fc
    .nat(most)
    .map((n) => ({ what: `${what} ${n}`, do: (world: World) => run(world, n), toString: () => `${what} ${n}` }));

const iterate = step('iterate', async (world) => {
  await world.commitBatch('batch');
  await world.commitUpdate(false);
});
const iterateAndSave = step('iterate and save', async (world) => {
  await world.commitBatch('batch');
  await world.commitUpdate(false);
  await world.saveCheckpoint(3);
});

const anything = fc.oneof(
  { weight: 6, arbitrary: iterateAndSave },
  { weight: 3, arbitrary: iterate },
  { weight: 6, arbitrary: step('janitor', (world) => world.janitor()) },
  { weight: 4, arbitrary: step('wait', (world) => world.wait(graceMs)) },
  { weight: 3, arbitrary: some('janitor dies after', 6, (world, n) => world.janitor(n)) },
  {
    weight: 3,
    arbitrary: some('janitor removes, and dies after', 12, (world, n) => {
      world.wait(graceMs);
      return world.janitor(n);
    }),
  },
  step('two janitors', (world) => world.twoJanitors()),
  step('a batch', (world) => world.commitBatch('batch')),
  step('rollout dies before its result', (world) => world.commitBatch('blob')),
  step('control dies before the batch', (world) => world.commitBatch('result')),
  step('an update', (world) => world.commitUpdate(false)),
  step('a skipped update', (world) => world.commitUpdate(true)),
  some('a save that dies after', 2, (world, n) => world.saveCheckpoint(n)),
  step('save again', (world) => world.saveCheckpoint(3)),
  step('damage', (world) => world.damageCheckpoint()),
  step('weights', (world) => world.publishWeights()),
  step('validate', (world) => world.evaluate()),
  some('pin', 4, (world, n) => world.pin(n)),
  step('unpin', (world) => world.unpin()),
  some('redo from', 4, (world, n) => world.redoFrom(n)),
  step('stop', (world) => world.becomes('stopped')),
  step('resume', (world) => world.becomes('running')),
  step('listings stand still', (world) => world.store.holdListings()),
  step('listings go on', (world) => world.store.refresh()),
);

const rules = fc.record({
  keep: fc.constantFrom(null, 1, 2, 3),
  batches: fc.constantFrom('since_oldest_checkpoint' as const, 'since_oldest_checkpoint' as const, 'all' as const),
  best: fc.boolean(),
});

describe('retention', () => {
  it('keeps everything that may still be needed, and in the end removes everything that cannot', async () => {
    await fc.assert(
      fc.asyncProperty(
        rules,
        fc.array(anything, { minLength: 5, maxLength: 30 }),
        async ({ keep, batches, best }, steps) => {
          const world = new World();
          await world.begin(keep, batches, best);
          for (const one of steps) {
            await one.do(world);
            expect(await world.lost(), `after ${one.what}`).toEqual([]);
          }
          world.store.refresh();
          await world.becomes('completed');
          for (let pass = 0; pass < 3; pass++) {
            world.wait(graceMs);
            expect((await world.janitor()).problem).toBeUndefined();
            expect(await world.lost(), 'at rest').toEqual([]);
          }
          if (batches === 'since_oldest_checkpoint') expect(await world.superfluous()).toEqual([]);
        },
      ),
      { numRuns: 150, seed: 5 },
    );
  });
});

describe('the best checkpoint', () => {
  it('stays below the floor until there is a better one', async () => {
    const world = new World();
    await world.begin(2, 'since_oldest_checkpoint', true);
    const all: BestCheckpoint[] = [];
    for (let k = 1; k <= 12; k++) {
      await world.iterate(1);
      await world.evaluate();
      for (let pass = 0; pass < 2; pass++) {
        world.wait(graceMs);
        await world.janitor();
      }
      const best = await bestCheckpoint(world.log);
      if (best !== undefined) all.push(best);
      const left = (await world.log.checkpoints.names()).map(({ iteration }) => iteration);
      expect(left).toEqual(
        [...new Set([k, k - 1, best?.iteration ?? k])].filter((one) => one > 0).sort((a, b) => b - a),
      );
    }
    // The best value never falls, and for some time the best checkpoint was older than the newest two.
    const values = all.map(({ value }) => value);
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(all.some(({ iteration }, i) => iteration < i)).toBe(true);
  });
});
