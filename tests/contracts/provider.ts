/** The contract of every provider. Each cloud's test calls this with a function that opens a provider of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Launch, Provider } from '../../core/ports/provider.ts';
import type { Ec2Machine } from '../../infra/fleet/ec2/machine.ts';
import type { Place } from '../../core/fleet/types.ts';

export interface CloudUnderTest {
  readonly provider: Provider;
  /** A pool that is in order. */
  readonly machine: Ec2Machine;
  /** A type whose instances can be had in every zone of `machine`. */
  readonly type: string;
  /** A type with a processor that cannot run the image. */
  readonly foreignType: string;
  close(): Promise<void>;
}

let launches = 0;

/** A launch of stack `stack`, each with a token of its own. */
export function launchOf(
  { machine, type }: Pick<CloudUnderTest, 'machine' | 'type'>,
  stack: string,
  given: Partial<Omit<Launch, 'place'>> & { readonly place?: Partial<Place> } = {},
): Launch {
  const launch = ++launches;
  const zone = Object.keys(machine.subnets)[0] as string;
  return {
    token: `${stack}-${launch}`,
    count: 1,
    machine,
    userData: '#!/bin/bash\nexec sleep infinity\n',
    tags: { stack, pool: 'rollout', launch, expires: '2026-12-01T00:00:00.000Z' },
    ...given,
    place: { zone, type, market: 'onDemand', usdPerHour: 0.1, ...given.place },
  };
}

export function providerContract(name: string, open: () => Promise<CloudUnderTest>): void {
  describe(`${name} as a provider`, () => {
    let cloud: CloudUnderTest;
    let provider: Provider;
    let region: string;
    beforeAll(async () => {
      cloud = await open();
      provider = cloud.provider;
      region = cloud.machine.region;
    });
    afterAll(() => cloud?.close());

    it('launches instances with their place and tags, and lists those of a stack only', async () => {
      const launch = launchOf(cloud, 'listed', { count: 2 });
      const before = Date.now();
      const { instances, refused } = await provider.launch(launch);
      expect(refused).toBeUndefined();
      expect([1, 2]).toContain(instances.length); // a cloud may give fewer, and moto does
      await provider.launch(launchOf(cloud, 'another'));
      const listed = await provider.list(region, 'listed');
      expect(listed.map(({ id }) => id).sort()).toEqual(instances.map(({ id }) => id).sort());
      for (const one of listed) {
        expect(one).toMatchObject({ type: cloud.type, zone: launch.place.zone, market: 'onDemand', tags: launch.tags });
        expect(['pending', 'running']).toContain(one.state);
        // Clouds give whole seconds, and their clocks differ from this one.
        expect(Date.parse(one.launchedAt)).toBeGreaterThan(before - 60_000);
        expect(Date.parse(one.launchedAt)).toBeLessThan(Date.now() + 60_000);
      }
      expect(await provider.list(region, 'nobody')).toEqual([]);
    });

    it('launches spot instances in each zone, and says so in the list', async () => {
      for (const zone of Object.keys(cloud.machine.subnets)) {
        const { instances } = await provider.launch(launchOf(cloud, 'spot', { place: { zone, market: 'spot' } }));
        expect(instances).toMatchObject([{ zone, market: 'spot' }]);
      }
      const listed = await provider.list(region, 'spot');
      expect(listed.map(({ zone }) => zone).sort()).toEqual(Object.keys(cloud.machine.subnets).sort());
      expect(new Set(listed.map(({ market }) => market))).toEqual(new Set(['spot']));
    });

    it('launches instances with a larger disk', async () => {
      const machine = { ...cloud.machine, diskGiB: 40 };
      const { instances } = await provider.launch(launchOf(cloud, 'disk', { machine }));
      expect(instances).toHaveLength(1);
    });

    it('ends instances, also twice, and beside ids that do not exist any more', async () => {
      const bought = [await provider.launch(launchOf(cloud, 'ended')), await provider.launch(launchOf(cloud, 'ended'))];
      const [first, second] = bought.map(({ instances }) => instances[0]?.id) as [string, string];
      const unknown = 'i-0123456789abcdef0';
      await provider.terminate(region, [first, unknown]);
      await provider.terminate(region, [first, unknown]);
      await provider.terminate(region, [unknown]);
      await provider.terminate(region, []);
      const states = new Map((await provider.list(region, 'ended')).map(({ id, state }) => [id, state]));
      expect(['ending', 'ended']).toContain(states.get(first));
      expect(['pending', 'running']).toContain(states.get(second));
    });

    it('gives the price of each type in each zone', async () => {
      const prices = await provider.spotPrices(region, [cloud.type, cloud.foreignType]);
      for (const zone of Object.keys(cloud.machine.subnets)) {
        const here = prices.filter((price) => price.zone === zone && price.type === cloud.type);
        expect(here).toHaveLength(1);
        expect(here[0]?.usdPerHour).toBeGreaterThan(0);
      }
      expect(await provider.spotPrices(region, [])).toEqual([]);
    });

    it('refuses user data that no cloud takes before it asks', async () => {
      const { instances, refused } = await provider.launch(launchOf(cloud, 'large', { userData: '#'.repeat(16_385) }));
      expect(instances).toEqual([]);
      expect(refused).toMatchObject({ kind: 'configuration', code: 'InvalidUserData.Malformed' });
      expect(refused?.message).toContain('16384');
      expect(await provider.list(region, 'large')).toEqual([]);
    });

    describe('checks a pool before it buys', () => {
      const check = (
        given: Partial<Ec2Machine> = {},
        types = [cloud.type],
        zones = Object.keys(cloud.machine.subnets),
      ) => provider.check({ ...cloud.machine, ...given }, types, zones, 'own');
      const zone = () => Object.keys(cloud.machine.subnets)[0] as string;

      it('and takes one that is in order, without a launch', async () => {
        await check();
        await check({ diskGiB: 100 });
        expect(await provider.list(region, 'check')).toEqual([]);
      });

      it.each<[string, string | RegExp, () => Promise<void>]>([
        ['a zone', /ec2.subnets.nowhere-1a/, () => check({}, [cloud.type], ['nowhere-1a'])],
        ['a type', 'ec2.types', () => check({}, [cloud.type, 'c7i.nonsense'])],
        ['a type for another processor', 'ec2.types', () => check({}, [cloud.foreignType])],
        ['an image', 'ec2.image', () => check({ image: 'ami-0123456789abcdef0' })],
        ['a small disk', 'ec2.disk_gib', () => check({ diskGiB: 1 })],
        ['no subnet of a zone', /ec2.subnets/, () => check({ subnets: {} })],
        [
          'a subnet',
          /ec2.subnets/,
          () => check({ subnets: { [zone()]: 'subnet-0123456789abcdef0' } }, [cloud.type], [zone()]),
        ],
        ['a subnet of another zone', /ec2.subnets/, () => check({ subnets: swapped(cloud.machine.subnets) })],
        ['a security group', 'ec2.security_groups', () => check({ securityGroups: ['sg-0123456789abcdef0'] })],
        ['an instance profile', 'ec2.instance_profile', () => check({ instanceProfile: 'nobody' })],
      ])('and names the key of %s that is wrong', async (_, where, checked) => {
        const error = await checked().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(error).toMatchObject({
          code: 'InvalidInput',
          where: typeof where === 'string' ? where : expect.stringMatching(where),
          hint: expect.stringMatching(/./),
        });
      });
    });
  });
}

/** The subnets of the first two zones, exchanged. */
function swapped(subnets: Readonly<Record<string, string>>): Record<string, string> {
  const [[a, ofA], [b, ofB], ...rest] = Object.entries(subnets) as [[string, string], [string, string]];
  return { [a]: ofB, [b]: ofA, ...Object.fromEntries(rest) };
}
