/** The provider on the test cloud: the contract, and what moto cannot show. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { controllerPolicy } from '../../infra/fleet/ec2/controller-policy.ts';
import type { Provider } from '../../core/ports/provider.ts';
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { roleOf } from '../cloud/access.ts';
import { freePorts } from '../../infra/ports.ts';
import type { TestCloud } from '../cloud/cloud.ts';
import { startTestCloud } from '../cloud/server.ts';
import { machineOf, useTestCredentials } from '../cloud/use.ts';
import { launchOf, providerContract } from './provider.ts';

useTestCredentials();
const type = 'c7i.2xlarge';
const zone = 'us-east-1a';
const region = 'us-east-1';

async function open() {
  const { cloud, endpoint, close } = await startTestCloud({
    account: { profiles: { worker: {}, admin: {} } },
    settings: { pageSize: 2 },
  });
  const provider = ec2Provider({ endpoint });
  const end = async () => {
    provider.close();
    await close();
  };
  return { cloud, endpoint, provider, machine: machineOf(cloud), type, foreignType: 'c7g.2xlarge', close: end };
}

providerContract('the test cloud', open);

describe('EC2, as the test cloud plays it', () => {
  let opened: Awaited<ReturnType<typeof open>>;
  let cloud: TestCloud;
  let provider: Provider;
  beforeAll(async () => {
    opened = await open();
    ({ cloud, provider } = opened);
  });
  afterEach(() => {
    cloud.faults.clear();
    cloud.settings.visibleAfterMs = 0;
  });
  afterAll(() => opened.close());
  const launch = (stack: string, given: Parameters<typeof launchOf>[2] = {}) => launchOf(opened, stack, given);
  const bought = (stack: string) => cloud.bills().filter(({ tags }) => tags['petrel:stack'] === stack);

  it('buys once for a token, however often it is asked', async () => {
    const order = launch('once', { count: 2 });
    const answers = await Promise.all([provider.launch(order), provider.launch(order)]);
    const later = await provider.launch(order);
    const ids = later.instances.map(({ id }) => id).sort();
    for (const { instances } of answers) expect(instances.map(({ id }) => id).sort()).toEqual(ids);
    expect(
      bought('once')
        .map(({ id }) => id)
        .sort(),
    ).toEqual(ids);
  });

  it('refuses a token with other parameters, as a fault of configuration', async () => {
    const order = launch('mismatch');
    await provider.launch(order);
    const { instances, refused } = await provider.launch({ ...order, userData: '#!/bin/bash\necho other\n' });
    expect(instances).toEqual([]);
    expect(refused).toMatchObject({ kind: 'configuration', code: 'IdempotentParameterMismatch' });
    expect(refused?.message).toContain('other parameters');
    expect(bought('mismatch')).toHaveLength(1);
  });

  it('does not buy again when the answer of the first call is lost', async () => {
    const order = launch('lost', { count: 2 });
    cloud.faults.order({ action: 'RunInstances', code: 'lostAnswer' });
    await expect(provider.launch(order)).rejects.toMatchObject({ kind: 'retryable', code: 'CloudUnavailable' });
    expect(bought('lost')).toHaveLength(2);
    const { instances } = await provider.launch(order);
    expect(instances.map(({ id }) => id).sort()).toEqual(
      bought('lost')
        .map(({ id }) => id)
        .sort(),
    );
  });

  it('gives the instances of a launch whose answer was lost also when they have ended since', async () => {
    const order = launch('ended-since', { count: 2 });
    cloud.faults.order({ action: 'RunInstances', code: 'lostAnswer' });
    await expect(provider.launch(order)).rejects.toMatchObject({ kind: 'retryable' });
    await Promise.all(bought('ended-since').map(({ id }) => cloud.lose(id)));
    const { instances, refused } = await provider.launch(order);
    expect(refused).toBeUndefined();
    expect(instances.map(({ id, state }) => [id, state]).sort()).toEqual(
      bought('ended-since')
        .map(({ id }) => [id, 'ended'])
        .sort(),
    );
    expect(bought('ended-since')).toHaveLength(2);
  });

  it('gives fewer than asked for, and nothing where nothing is free', async () => {
    const pool = { type, zone, market: 'spot' } as const;
    cloud.setCapacity(pool, 2);
    const some = await provider.launch(launch('few', { count: 3, place: { market: 'spot' } }));
    expect(some.instances).toHaveLength(2);
    const none = await provider.launch(launch('few', { place: { market: 'spot' } }));
    expect(none).toMatchObject({ instances: [], refused: { kind: 'capacity', code: 'InsufficientInstanceCapacity' } });
    const elsewhere = await provider.launch(launch('few', { place: { market: 'spot', zone: 'us-east-1b' } }));
    expect(elsewhere.instances).toHaveLength(1);
    cloud.setCapacity(pool, undefined);
  });

  it.each([
    ['spot', 'MaxSpotInstanceCountExceeded'],
    ['onDemand', 'VcpuLimitExceeded'],
  ] as const)('says when the limit of the account is reached: %s', async (market, code) => {
    cloud.setLimit(market, 0);
    const { refused } = await provider.launch(launch('limit', { place: { market } }));
    expect(refused).toMatchObject({ kind: 'limit', code });
    cloud.setLimit(market, undefined);
  });

  it.each([
    ['RequestLimitExceeded', 503],
    ['Throttling', 400],
    ['InternalError', 500],
    ['ServiceUnavailable', 503],
    ['Unknown', 500],
  ])('asks the caller to try again after %s', async (code, status) => {
    cloud.faults.order({ code, status, times: 5 });
    const again = { kind: 'retryable', code: 'CloudUnavailable', message: expect.stringContaining(code) };
    await expect(provider.launch(launch('throttled'))).rejects.toMatchObject(again);
    await expect(provider.list(region, 'throttled')).rejects.toMatchObject(again);
    await expect(provider.terminate(region, ['i-0123456789abcdef0'])).rejects.toMatchObject(again);
    await expect(provider.spotPrices(region, [type])).rejects.toMatchObject(again);
    await expect(provider.check(opened.machine, [type], [zone], 'own')).rejects.toMatchObject(again);
  });

  it.each([
    ['InsufficientFreeAddressesInSubnet', 400, 'capacity'],
    ['SpotMaxPriceTooLow', 400, 'capacity'],
    ['Unsupported', 400, 'capacity'],
    ['InstanceLimitExceeded', 400, 'limit'],
    ['UnauthorizedOperation', 403, 'configuration'],
    ['AuthFailure.ServiceLinkedRoleCreationNotPermitted', 403, 'configuration'],
    ['InvalidParameterCombination', 400, 'configuration'],
    ['NeverHeardOf', 400, 'configuration'],
  ])('sorts %s', async (code, status, kind) => {
    cloud.faults.order({ action: 'RunInstances', code, status });
    expect(await provider.launch(launch('sorted'))).toMatchObject({ instances: [], refused: { kind, code } });
  });

  it('tells a person when the account denies a call that is no launch', async () => {
    cloud.faults.order({ code: 'UnauthorizedOperation', status: 403 });
    await expect(provider.list(region, 'denied')).rejects.toMatchObject({
      kind: 'unfit',
      hint: expect.stringContaining('petrel fleet policy --controller'),
    });
  });

  it('asks the caller to try again when nobody answers', async () => {
    const [port] = (await freePorts(1)) as [number];
    const alone = ec2Provider({ endpoint: `http://127.0.0.1:${port}` });
    const again = { kind: 'retryable', code: 'CloudUnavailable' };
    await expect(alone.launch(launch('nobody'))).rejects.toMatchObject(again);
    await expect(alone.list(region, 'nobody')).rejects.toMatchObject(again);
    alone.close();
  });

  it('waits for credentials where there are none, and does not stop the pool for that', async () => {
    const { AWS_ACCESS_KEY_ID: key } = process.env;
    delete process.env['AWS_ACCESS_KEY_ID'];
    process.env['AWS_EC2_METADATA_DISABLED'] = 'true';
    const without = ec2Provider({ endpoint: opened.endpoint });
    const unfit = { kind: 'unfit', hint: expect.stringContaining('get-caller-identity') };
    await expect(without.launch(launch('without'))).rejects.toMatchObject(unfit);
    await expect(without.list(region, 'without')).rejects.toMatchObject(unfit);
    await expect(without.check(opened.machine, [type], [zone], 'without')).rejects.toMatchObject({
      code: 'InvalidInput',
    });
    without.close();
    process.env['AWS_ACCESS_KEY_ID'] = key;
    delete process.env['AWS_EC2_METADATA_DISABLED'];
  });

  it('may leave a new instance out of the list, and counts it as ended then', async () => {
    cloud.settings.visibleAfterMs = Infinity;
    const { instances } = await provider.launch(launch('late'));
    const ids = instances.map(({ id }) => id);
    expect(await provider.list(region, 'late')).toEqual([]);
    await provider.terminate(region, ids);
    cloud.settings.visibleAfterMs = 0;
    expect(await provider.list(region, 'late')).toMatchObject([{ id: ids[0], state: 'running' }]);
  });

  it('says why an instance has ended', async () => {
    const place = { market: 'spot' } as const;
    const ids = [];
    for (let n = 0; n < 2; n++) ids.push((await provider.launch(launch('why', { place }))).instances[0]?.id ?? '');
    const [lost, given] = ids as [string, string];
    await cloud.lose(lost);
    await provider.terminate(region, [given]);
    await cloud.instance(given).terminated;
    const reasons = (await provider.list(region, 'why')).map(({ id, reason }) => [id, reason]);
    expect(new Map(reasons as [string, string][])).toEqual(
      new Map([
        [lost, 'Server.SpotInstanceTermination'],
        [given, 'Client.UserInitiatedShutdown'],
      ]),
    );
  });

  it('gives the newest price of each place', async () => {
    cloud.setPrice(type, zone, 0.25, Date.now() - 1_000);
    expect(await provider.spotPrices(region, [type])).toContainEqual({ type, zone, usdPerHour: 0.25 });
    cloud.setPrice(type, zone, 0.15);
    expect(await provider.spotPrices(region, [type])).toContainEqual({ type, zone, usdPerHour: 0.15 });
  });

  describe('under the policy of petrel fleet policy --controller', () => {
    const profile = { instanceProfile: 'worker' };
    const policy = controllerPolicy({ stack: 'own', region, role: roleOf('worker') });
    const denied = { instances: [], refused: { kind: 'configuration', code: 'UnauthorizedOperation' } };
    const own = (market: 'spot' | 'onDemand', given = {}) =>
      provider.launch(launch('own', { machine: { ...opened.machine, ...profile, ...given }, place: { market } }));
    beforeEach(() => (cloud.policy = policy));
    afterEach(() => (cloud.policy = undefined));

    it('a pool is checked, launched, listed and ended', async () => {
      await provider.check({ ...opened.machine, ...profile }, [type], [zone], 'own');
      for (const market of ['spot', 'onDemand'] as const) expect((await own(market)).instances).toHaveLength(1);
      const [first] = await provider.list(region, 'own');
      await provider.terminate(region, [first?.id ?? '']);
      await cloud.instance(first?.id ?? '').terminated;
      await provider.spotPrices(region, [type]);
    });

    it('nothing is launched with the tag of another stack, or with another role', async () => {
      expect(await provider.launch(launch('another'))).toMatchObject(denied);
      expect(await own('spot', { instanceProfile: 'admin' })).toMatchObject(denied);
      expect(bought('another')).toEqual([]);
    });

    it('the instances of others are not ended, and those that are gone count as ended', async () => {
      cloud.policy = undefined;
      const other = (await provider.launch(launch('another'))).instances[0]?.id ?? '';
      cloud.policy = policy;
      const mine = (await own('spot')).instances[0]?.id ?? '';
      await expect(provider.terminate(region, [mine, other])).rejects.toMatchObject({ code: 'CloudDenied' });
      expect(cloud.instance(other).state).not.toMatch(/shutting-down|terminated/);
      expect(cloud.instance(mine).state).toMatch(/shutting-down|terminated/);
      await provider.terminate(region, ['i-0123456789abcdef0']);
    });
  });
});
