/**
 * Checks what fleet.yaml says of a pool against the account, without buying: everything that can be wrong before the
 * first launch.
 */
import {
  DescribeAvailabilityZonesCommand,
  DescribeImagesCommand,
  DescribeInstanceTypesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  RunInstancesCommand,
  paginateDescribeInstanceTypeOfferings,
} from '@aws-sdk/client-ec2';
import type { EC2Client, Image, Subnet, _InstanceType } from '@aws-sdk/client-ec2';
import { InvalidInputError, PetrelError } from '../../../core/errors.ts';
import { codeOf, failureOf, isDenied, isTransient } from './failures.ts';
import { runInstancesInput } from './launch.ts';
import type { Ec2Launch, Ec2Machine } from './machine.ts';

/** Throws InvalidInputError with the key in `where`, RetryableError when EC2 does not answer. */
export async function checkMachine(
  client: EC2Client,
  machine: Ec2Machine,
  types: readonly string[],
  zones: readonly string[],
  stack: string,
): Promise<void> {
  await checkZones(client, machine.region, zones);
  await checkOfferings(client, machine.region, types, zones);
  const image = await checkImage(client, machine);
  await checkProcessor(client, types, image);
  const vpc = await checkSubnets(client, machine, zones);
  await checkSecurityGroups(client, machine, vpc);
  for (const market of ['spot', 'onDemand'] as const)
    await checkRights(
      client,
      {
        token: `check-${Date.now()}`,
        place: { zone: zones[0] as string, type: types[0] as string, market, usdPerHour: 0 },
        count: 1,
        machine,
        userData: '#!/bin/bash\n',
        tags: { stack, pool: 'check', launch: 0, expires: new Date().toISOString() },
      },
      image,
    );
}

const wrong = (where: string, message: string, hint: string): InvalidInputError =>
  new InvalidInputError(message, { where, hint });

/** Any answer but a fault of the service is about what was asked for. */
async function ask<T>(what: string, where: string, question: () => Promise<T>): Promise<T> {
  try {
    return await question();
  } catch (error) {
    if (error instanceof PetrelError || isTransient(error)) throw failureOf(what, error);
    const message = `EC2 refused to ${what}: ${codeOf(error)}: ${error instanceof Error ? error.message : String(error)}`;
    if (isDenied(error)) throw denied(message, error);
    throw new InvalidInputError(message, { where, hint: `mend ${where} in fleet.yaml`, cause: error });
  }
}

function denied(message: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(message, {
    where: 'ec2',
    hint:
      codeOf(cause) === 'UnauthorizedOperation'
        ? 'give this machine the rights that `petrel fleet policy --controller` prints'
        : 'check its credentials with `aws sts get-caller-identity`',
    cause,
  });
}

async function checkZones(client: EC2Client, region: string, zones: readonly string[]): Promise<void> {
  const { AvailabilityZones = [] } = await ask('name the zones', 'ec2.region', () =>
    client.send(new DescribeAvailabilityZonesCommand({})),
  );
  const known = AvailabilityZones.flatMap(({ ZoneName }) => ZoneName ?? []);
  for (const zone of zones)
    if (!known.includes(zone))
      throw wrong(`ec2.subnets.${zone}`, `expected a zone of ${region}, got ${zone}`, `zones: ${known.join(', ')}`);
}

/** A type need not be in every zone, but in one; and a zone needs one of the types. */
async function checkOfferings(
  client: EC2Client,
  region: string,
  types: readonly string[],
  zones: readonly string[],
): Promise<void> {
  const offered: { readonly type: string; readonly zone: string }[] = [];
  await ask('name the instance types', 'ec2.types', async () => {
    const Filters = [
      { Name: 'instance-type', Values: [...types] },
      { Name: 'location', Values: [...zones] },
    ];
    const pages = paginateDescribeInstanceTypeOfferings({ client }, { LocationType: 'availability-zone', Filters });
    for await (const { InstanceTypeOfferings = [] } of pages)
      for (const { InstanceType: type, Location: zone } of InstanceTypeOfferings)
        if (type !== undefined && zone !== undefined) offered.push({ type, zone });
  });
  for (const type of types)
    if (!offered.some((offer) => offer.type === type))
      throw wrong(
        'ec2.types',
        `expected a type of instance that ${zones.join(' or ')} has, got ${type}`,
        `aws ec2 describe-instance-type-offerings --region ${region} --location-type availability-zone lists them`,
      );
  for (const zone of zones)
    if (!offered.some((offer) => offer.zone === zone))
      throw wrong(
        `ec2.subnets.${zone}`,
        `expected a zone that has one of ${types.join(', ')}, got ${zone}`,
        'leave this zone out, or name a type that it has',
      );
}

async function checkImage(client: EC2Client, { image, diskGiB, region }: Ec2Machine): Promise<Image> {
  const { Images = [] } = await ask('describe the image', 'ec2.image', () =>
    client.send(new DescribeImagesCommand({ ImageIds: [image] })),
  );
  const found = Images[0];
  if (found === undefined)
    throw wrong(
      'ec2.image',
      `expected an image of ${region}, got ${image}`,
      'an image belongs to one region: copy it there',
    );
  if (found.State !== undefined && found.State !== 'available')
    throw wrong(
      'ec2.image',
      `expected an available image, got ${image}, which is ${found.State}`,
      'wait, or name another one',
    );
  const least =
    found.BlockDeviceMappings?.find(({ DeviceName }) => DeviceName === found.RootDeviceName)?.Ebs?.VolumeSize ?? 0;
  if (diskGiB !== undefined && diskGiB < least)
    throw wrong('ec2.disk_gib', `expected at least ${least}, which ${image} has, got ${diskGiB}`, `disk_gib: ${least}`);
  return found;
}

async function checkProcessor(client: EC2Client, types: readonly string[], image: Image): Promise<void> {
  const { InstanceTypes = [] } = await ask('describe the instance types', 'ec2.types', () =>
    client.send(new DescribeInstanceTypesCommand({ InstanceTypes: [...types] as _InstanceType[] })),
  );
  for (const { InstanceType, ProcessorInfo } of InstanceTypes) {
    const runs: readonly string[] = ProcessorInfo?.SupportedArchitectures ?? [];
    if (image.Architecture !== undefined && runs.length > 0 && !runs.includes(image.Architecture))
      throw wrong(
        'ec2.types',
        `expected types for an image of ${image.Architecture}, got ${InstanceType}, which runs ${runs.join(', ')}`,
        'name another type, or an image for it',
      );
  }
}

/** The subnets' network. */
async function checkSubnets(client: EC2Client, { subnets }: Ec2Machine, zones: readonly string[]): Promise<string> {
  const found: Subnet[] = [];
  for (const zone of zones) {
    const where = `ec2.subnets.${zone}`;
    const id = subnets[zone];
    if (id === undefined) throw wrong(where, `expected a subnet of ${zone}, got none`, `subnets: {${zone}: subnet-…}`);
    const { Subnets = [] } = await ask('describe the subnet', where, () =>
      client.send(new DescribeSubnetsCommand({ SubnetIds: [id] })),
    );
    const subnet = Subnets[0];
    if (subnet?.AvailabilityZone !== zone)
      throw wrong(
        where,
        `expected a subnet of ${zone}, got ${id} of ${subnet?.AvailabilityZone}`,
        'name a subnet of that zone',
      );
    found.push(subnet);
  }
  const [first] = found;
  const other = found.find(({ VpcId }) => VpcId !== first?.VpcId);
  if (other !== undefined)
    throw wrong(
      `ec2.subnets.${other.AvailabilityZone}`,
      `expected subnets of one network, got ${other.SubnetId} of ${other.VpcId} beside ${first?.SubnetId} of ${first?.VpcId}`,
      'name subnets of one VPC, or make a pool for each',
    );
  return first?.VpcId ?? '';
}

async function checkSecurityGroups(client: EC2Client, { securityGroups }: Ec2Machine, vpc: string): Promise<void> {
  const { SecurityGroups = [] } = await ask('describe the security groups', 'ec2.security_groups', () =>
    client.send(new DescribeSecurityGroupsCommand({ GroupIds: [...securityGroups] })),
  );
  for (const { GroupId, VpcId } of SecurityGroups)
    if (VpcId !== vpc)
      throw wrong(
        'ec2.security_groups',
        `expected groups of the subnets' network ${vpc}, got ${GroupId} of ${VpcId}`,
        'make a group in that VPC',
      );
}

/**
 * EC2 looks at the rights, and at parameters that the other checks do not reach, and then refuses with DryRunOperation.
 */
async function checkRights(client: EC2Client, launch: Ec2Launch, image: Image): Promise<void> {
  const input = runInstancesInput(launch, image.RootDeviceName);
  await ask('launch an instance', 'ec2', async () => {
    try {
      await client.send(new RunInstancesCommand({ ...input, DryRun: true }));
    } catch (error) {
      if (codeOf(error) === 'DryRunOperation') return;
      if (/instance ?profile/i.test(String(error)))
        throw wrong('ec2.instance_profile', String(error), 'aws iam list-instance-profiles shows those of the account');
      throw error;
    }
  });
}
