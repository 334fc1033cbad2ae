import { describe, expect, it } from 'vitest';
import { boughtPools, checkFleetSpec, placesOf, plannedPool, spotKey } from './spec.ts';
import type { BoughtPool } from './spec.ts';

const pool = {
  provider: 'ec2',
  max: 8,
  ec2: {
    region: 'eu-west-1',
    image: 'ami-0abc',
    types: ['c7i.xlarge', 'c7a.xlarge'],
    subnets: { 'eu-west-1a': 'subnet-1', 'eu-west-1b': 'subnet-2' },
    security_groups: ['sg-1'],
  },
};
const file = (more: object = {}, fleet: object = {}) => ({ ...fleet, pools: { samplers: { ...pool, ...more } } });
const bought = (more: object = {}): BoughtPool =>
  boughtPools(checkFleetSpec(file(more), 'fleet.yaml'))[0]?.[1] as BoughtPool;

describe('fleet.yaml', () => {
  it('has defaults', () => {
    expect(bought()).toMatchObject({
      roles: ['rollout', 'reward'],
      min: 0,
      markets: ['spot'],
      idle: '5m',
      join_within: '10m',
      own_scorers: 'sandboxed',
      lifetime: '12h',
    });
  });

  it.each<[string, object, RegExp]>([
    ['an unknown key', file({ maximum: 3 }), /pools\.samplers: .*"maximum"/],
    [
      'a key that is missing',
      { pools: { samplers: { ...pool, max: undefined } } },
      /pools\.samplers\.max: expected number, got nothing/,
    ],
    ['an unknown provider', file({ provider: 'gcp' }), /pools\.samplers\.provider/],
    ['a role that no bought machine may have', file({ roles: ['critic'] }), /pools\.samplers\.roles\.0/],
    ['a duration without a unit', file({ idle: '300' }), /pools\.samplers\.idle: expected a duration such as 90s/],
    ['bounds that contradict', file({ min: 9 }), /expected min <= max, got min 9 and max 8/],
    ['more than the fleet may have', file({}, { max_instances: 4 }), /expected max <= max_instances \(4\), got 8/],
    ['a floor above the bound', file({ on_demand_floor: 9 }), /expected on_demand_floor <= max \(8\), got 9/],
    ['a floor without that market', file({ on_demand_floor: 1 }), /expected the market on_demand/],
    [
      'on-demand instances without prices',
      file({ markets: ['on_demand'] }),
      /expected a price of each type, got none of c7i/,
    ],
    ['no zone', file({ ec2: { ...pool.ec2, subnets: {} } }), /expected at least one zone/],
    [
      'machines that end before they may join',
      file({ lifetime: '5m' }),
      /expected join_within < lifetime, got 10m and 5m/,
    ],
    ['a pool name that is no word', { pools: { 'my pool': pool } }, /pools\.my pool/],
    ['no money', file({}, { max_usd_per_hour: 0 }), /max_usd_per_hour/],
  ])('is refused with %s', (_, value, message) => {
    expect(() => checkFleetSpec(value, 'fleet.yaml')).toThrow(message);
  });

  it('offers a place only with a price', () => {
    const spot = new Map([[spotKey({ type: 'c7i.xlarge', zone: 'eu-west-1b' }), 0.07]]);
    expect(placesOf(bought(), spot)).toEqual([
      { type: 'c7i.xlarge', zone: 'eu-west-1b', market: 'spot', usdPerHour: 0.07 },
    ]);
    const both = bought({
      markets: ['spot', 'on_demand'],
      ec2: { ...pool.ec2, on_demand_usd_per_hour: { 'c7i.xlarge': 0.2, 'c7a.xlarge': 0.21 } },
    });
    expect(placesOf(both, spot).map(({ market }) => market)).toEqual([
      'onDemand',
      'spot',
      'onDemand',
      'onDemand',
      'onDemand',
    ]);
  });

  it('gives a pool the number that petrel fleet scale has set', () => {
    expect(plannedPool('samplers', bought(), { spot: new Map(), count: 3 })).toMatchObject({ min: 3, max: 3 });
  });
});
