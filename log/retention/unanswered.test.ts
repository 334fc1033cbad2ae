import { expect, it } from 'vitest';
import { RetryableError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { passOver } from './pass.ts';
import { World } from './world.test-support.ts';

it('removes and marks nothing when the store does not answer, because shards would outlive their manifest', async () => {
  const world = new World();
  await world.begin(2, 'all');
  await world.iterate(4);
  const { store, log } = world;
  const [oldest] = await store.children(keys.checkpoints(log.runId));
  const get = store.get.bind(store);
  let answers = false;
  store.get = async (key, range) => {
    if (!answers && key.endsWith(`/${oldest}`)) throw new RetryableError('StoreUnavailable', 'no answer');
    return get(key, range);
  };
  expect(await passOver(log, { now: world.now(), graceMs: 0 })).toMatchObject({ marked: 0, problem: 'no answer' });
  answers = true;
  // Two checkpoints below the floor, each with a manifest and three shards.
  expect(await passOver(log, { now: world.now(), graceMs: 0 })).toMatchObject({ marked: 8, floor: 3 });
});
