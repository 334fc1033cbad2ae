/** Which instances are given back because they do not work, on a real store. */
import { afterAll, describe, expect, it } from 'vitest';
import { checkFleetSpec } from '../../core/fleet/spec.ts';
import { FleetLog } from '../../log/fleet/fleet-log.ts';
import type { KnownInstance } from '../../log/fleet/fleet-log.ts';
import { cliHome } from '../cli.ts';
import { noteOverdue } from '../../activities/fleet/endings.ts';

const home = cliHome();
afterAll(() => home.remove());
let stacks = 0;

const ec2 = {
  region: 'us-east-1',
  image: 'ami-1',
  types: ['c7i.2xlarge'],
  subnets: { 'us-east-1a': 'subnet-1' },
  security_groups: ['sg-1'],
};
const spec = checkFleetSpec(
  { pools: { samplers: { provider: 'ec2', roles: ['rollout'], max: 4, join_within: '1m', ec2 } } },
  'fleet.yaml',
);
const at = (seconds: number) => new Date(Date.UTC(2027, 0, 31, 10, 0, seconds));
const launch = { pool: 'samplers', expires: at(3_600).toISOString() };
const instance = (more: Partial<KnownInstance>) =>
  ({ id: 'i-1', launch, launchedAt: at(0).toISOString(), ...more }) as KnownInstance;
const joined = { format: 2, id: 'i-1', at: at(50).toISOString(), key: 'U', instance: 'samplers-1' } as const;
const ready = { format: 2, id: 'i-1', at: at(55).toISOString() } as const;

describe('an instance that is to join within a minute is given back', () => {
  it.each([
    ['when it has not joined after that', 61, {}, /it has not joined within 60 s/],
    ['not before', 60, {}, undefined],
    [
      'when it was admitted, and no worker came within a minute after',
      111,
      { joined },
      /its worker has not announced itself/,
    ],
    ['not in that minute', 110, { joined }, undefined],
    ['not when it works', 3_000, { joined, ready }, undefined],
    ['at the end of its lifetime', 3_601, { joined, ready }, /its lifetime ended/],
  ] as const)('%s', async (_, seconds, more, because) => {
    const log = new FleetLog(await home.store(), `stack-${++stacks}`);
    await noteOverdue(log, [instance(more)], spec, at(seconds));
    const left = (await log.leaving('i-1'))?.because;
    if (because === undefined) expect(left).toBeUndefined();
    else expect(left).toMatch(because);
  });
});
