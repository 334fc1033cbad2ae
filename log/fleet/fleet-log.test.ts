/** A pass of the fleet and the admission of machines read the same log at the same time. */
import { expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { FleetLog } from './fleet-log.ts';

const at = '2027-01-31T10:00:00.000Z';
const launch: Parameters<FleetLog['decideLaunch']>[0] = {
  ...{ n: 1, pool: 'samplers', at, count: 1, because: 'samplers: 0 to 1', token: 'token', nonce: 'nonce' },
  place: { type: 'c7i.2xlarge', zone: 'us-east-1a', market: 'spot', usdPerHour: 0.1 },
  userData: '',
  expires: '2027-01-31T11:00:00.000Z',
  machine: { kind: 'ec2', region: 'us-east-1', image: 'ami-1', subnets: {}, securityGroups: [] },
};
const answer = { n: 1, pool: 'samplers', at, instances: [{ id: 'i-1', launchedAt: at }] };

/** A store that holds back what it has read of one object, once, until `release`. */
class SlowStore extends MemoryStore {
  readonly #slow: string;
  readonly #released: Promise<void>;
  #isHeld = false;
  /** Resolves when the object has been read. */
  readonly held: Promise<void>;
  #hold = () => {};
  release = () => {};

  constructor(slow: string) {
    super();
    this.#slow = slow;
    this.held = new Promise((resolve) => (this.#hold = resolve));
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  override async get(...[key, range]: Parameters<MemoryStore['get']>): ReturnType<MemoryStore['get']> {
    const bytes = await super.get(key, range);
    if (key === this.#slow && !this.#isHeld) {
      this.#isHeld = true;
      this.#hold();
      await this.#released;
    }
    return bytes;
  }
}

it('whoever reads after the answer of a launch sees its instances, also when an earlier read ends later', async () => {
  const store = new SlowStore(keys.launchAnswer('stack', 'samplers', 1));
  await new FleetLog(store, 'stack').decideLaunch(launch);
  const log = new FleetLog(store, 'stack');
  const before = log.launches('samplers');
  await store.held;
  await log.answerLaunch(answer);
  const [after] = await log.launches('samplers');
  store.release();
  expect((await before)[0]?.answer).toBeUndefined();
  expect(after?.answer?.instances).toHaveLength(1);
  expect(await log.instances()).toHaveLength(1);
});

it('whoever reads after an instance was told to leave sees it, also when an earlier read ends later', async () => {
  const store = new SlowStore(keys.instanceLeaving('stack', 'i-1'));
  const log = new FleetLog(store, 'stack');
  await log.decideLaunch(launch);
  await log.answerLaunch(answer);
  const before = log.instances();
  await store.held;
  await log.noteLeaving({ id: 'i-1', at, ending: 'drained', because: 'petrel fleet drain' });
  const [after] = await log.instances();
  store.release();
  expect((await before)[0]?.leaving).toBeUndefined();
  expect(after?.leaving?.ending).toBe('drained');
  expect((await log.instances())[0]?.leaving?.ending).toBe('drained');
});

it('a read that has failed is tried again', async () => {
  const store = new MemoryStore();
  const log = new FleetLog(store, 'stack');
  await log.decideLaunch(launch);
  const { get } = store;
  store.get = () => Promise.reject(new Error('the store is away'));
  await expect(log.launches('samplers')).rejects.toThrow('the store is away');
  store.get = get.bind(store);
  expect(await log.launches('samplers')).toHaveLength(1);
});
