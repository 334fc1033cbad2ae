import { expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { graceMs, World } from './world.test-support.ts';
import { sweepStore } from './sweep.ts';

it('removes nothing more once another process was asked to sweep, and that one does the rest', async () => {
  const world = new World();
  await world.begin(1, 'since_oldest_checkpoint');
  await world.iterate(4);
  await world.janitor();
  world.wait(graceMs);
  const left = () =>
    [...world.store.objects.keys()].filter(
      (key) => key.startsWith(keys.blobs(world.log.runId)) || key.startsWith(keys.checkpoints(world.log.runId)),
    );
  const [before, stopped] = [left().length, new AbortController()];
  const remove = world.store.remove.bind(world.store);
  world.store.remove = async (key) => {
    await remove(key);
    stopped.abort(new Error('another sweeps'));
  };
  await expect(sweepStore(world.store, { now: world.now(), graceMs, signal: stopped.signal })).rejects.toThrow(
    'another sweeps',
  );
  expect(left()).toHaveLength(before - 1);
  world.store.remove = remove;
  const { runs } = await sweepStore(world.store, { now: world.now(), graceMs });
  expect(runs[0]?.removed.objects).toBeGreaterThan(1);
  expect(left().length).toBe(before - 1 - (runs[0]?.removed.objects ?? 0));
  expect(await world.lost()).toEqual([]);
});
