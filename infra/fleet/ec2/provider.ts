/**
 * EC2 as a provider: its own planner has chosen the place, so each call buys at one
 * (docs/decisions/0021-run-instances.md).
 */
import {
  DescribeInstancesCommand,
  TerminateInstancesCommand,
  paginateDescribeInstances,
  paginateDescribeSpotPriceHistory,
} from '@aws-sdk/client-ec2';
import type { EC2Client, _InstanceType } from '@aws-sdk/client-ec2';
import { stackTag } from './controller-policy.ts';
import type { CloudInstance, Provider, SpotPrice } from '../../../core/ports/provider.ts';
import { checkMachine } from './check.ts';
import { Ec2Clients } from './client.ts';
import { codeOf, failureOf } from './failures.ts';
import { cloudInstance } from './instances.ts';
import { launchOn } from './launch.ts';
import { ec2MachineOf } from './machine.ts';

export interface Ec2Provider extends Provider {
  close(): void;
}

/** The most answers in one page; EC2 gives the rest page by page. */
const pageSize = 500;

/** `endpoint` overrides the environment's. Calls other than a launch throw UnfitError when the account denies them. */
export function ec2Provider({ endpoint }: { readonly endpoint?: string | undefined } = {}): Ec2Provider {
  const clients = new Ec2Clients(endpoint);
  return {
    launch: async ({ machine, ...launch }) =>
      launchOn(clients.in(machine.region), { ...launch, machine: ec2MachineOf(machine) }),
    terminate: (region, ids) => terminate(clients.in(region), ids),
    list: (region, stack) => list(clients.in(region), stack),
    spotPrices: (region, types) => spotPrices(clients.in(region), types),
    check: async (machine, ...pool) => checkMachine(clients.in(machine.region), ec2MachineOf(machine), ...pool),
    close: () => clients.close(),
  };
}

/**
 * EC2 ends none of them when it does not know one, or when one may not be ended; so then each is asked for alone. An
 * instance of some seconds may be unknown yet: whoever launched it finds it in a later list.
 */
async function terminate(client: EC2Client, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  try {
    await client.send(new TerminateInstancesCommand({ InstanceIds: [...ids] }));
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'InvalidInstanceID.NotFound' && code !== 'UnauthorizedOperation')
      throw failureOf('end instances', error);
    if (ids.length > 1) for (const id of ids) await terminate(client, [id]);
    // An instance without tags is not the stack's to end, and one that is long gone has none.
    else if (code === 'UnauthorizedOperation' && (await exists(client, ids[0] as string)))
      throw failureOf(`end ${ids[0]}`, error);
  }
}

async function exists(client: EC2Client, id: string): Promise<boolean> {
  const command = new DescribeInstancesCommand({ Filters: [{ Name: 'instance-id', Values: [id] }] });
  const { Reservations = [] } = await client.send(command).catch((error: unknown) => {
    throw failureOf(`describe ${id}`, error);
  });
  return Reservations.length > 0;
}

async function list(client: EC2Client, stack: string): Promise<CloudInstance[]> {
  const found: CloudInstance[] = [];
  try {
    const Filters = [{ Name: `tag:${stackTag}`, Values: [stack] }];
    for await (const { Reservations = [] } of paginateDescribeInstances({ client, pageSize }, { Filters }))
      found.push(...Reservations.flatMap(({ Instances = [] }) => Instances.map(cloudInstance)));
  } catch (error) {
    throw failureOf('list instances', error);
  }
  return found;
}

/** Prices since now are those that hold now, and any that have come while the pages were read. */
async function spotPrices(client: EC2Client, types: readonly string[]): Promise<SpotPrice[]> {
  const newest = new Map<string, SpotPrice & { readonly at: number }>();
  const request = {
    InstanceTypes: types as _InstanceType[],
    ProductDescriptions: ['Linux/UNIX'],
    StartTime: new Date(),
  };
  if (types.length === 0) return [];
  try {
    for await (const { SpotPriceHistory = [] } of paginateDescribeSpotPriceHistory({ client, pageSize }, request))
      for (const { InstanceType: type, AvailabilityZone: zone, SpotPrice: price, Timestamp } of SpotPriceHistory) {
        const usdPerHour = Number(price);
        if (type === undefined || zone === undefined || !(usdPerHour > 0)) continue;
        const at = Timestamp?.getTime() ?? 0;
        if (at >= (newest.get(`${type} ${zone}`)?.at ?? 0))
          newest.set(`${type} ${zone}`, { type, zone, usdPerHour, at });
      }
  } catch (error) {
    throw failureOf('give spot prices', error);
  }
  return [...newest.values()].map(({ type, zone, usdPerHour }) => ({ type, zone, usdPerHour }));
}
