/**
 * moto, another emulator of EC2: its answers have the shape of the real ones. `node setup/main.mjs --tests` brings
 * it.
 */
import { dirname } from 'node:path';
import {
  DescribeImagesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import type { Ec2Machine } from '../../infra/fleet/ec2/machine.ts';
import { freePorts, loopback } from '../../infra/ports.ts';
import { toolPath } from '../s3-servers.ts';
import { startServer } from '../servers.ts';
import type { TestServer } from '../servers.ts';

export interface MotoServer extends TestServer {
  readonly endpoint: string;
}

/** Starts moto, whose state is in memory; only its log is under `folder`. */
export async function startMoto(folder: string): Promise<MotoServer> {
  const path = toolPath('moto');
  if (path === undefined) throw new Error('moto is missing: node setup/main.mjs --tests');
  const [port] = (await freePorts(1)) as [number];
  const endpoint = `http://${loopback}:${port}`;
  const env = { ...process.env, PYTHONPATH: dirname(dirname(path)) };
  const server = await startServer('moto', folder, path, ['-H', loopback, '-p', String(port)], env, () =>
    fetch(`${endpoint}/moto-api/`).then(
      (answer) => answer.ok,
      () => false,
    ),
  );
  return Object.assign(server, { endpoint });
}

/** A pool that is in order there: moto's account begins with a network and some images. */
export async function machineOfMoto(
  { endpoint }: MotoServer,
  region: string,
  zones: readonly string[],
): Promise<Ec2Machine> {
  const client = new EC2Client({ region, endpoint });
  const { Subnets = [] } = await client.send(new DescribeSubnetsCommand({}));
  const { SecurityGroups = [] } = await client.send(new DescribeSecurityGroupsCommand({}));
  const { Images = [] } = await client.send(new DescribeImagesCommand({}));
  client.destroy();
  const subnets = Subnets.filter(({ AvailabilityZone: zone }) => zones.includes(zone ?? ''));
  return {
    kind: 'ec2',
    region,
    image: Images.find(({ Architecture }) => Architecture === 'x86_64')?.ImageId ?? '',
    subnets: Object.fromEntries(
      subnets.map(({ AvailabilityZone = '', SubnetId = '' }) => [AvailabilityZone, SubnetId]),
    ),
    securityGroups: [SecurityGroups[0]?.GroupId ?? ''],
  };
}
