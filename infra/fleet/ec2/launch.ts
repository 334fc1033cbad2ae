/**
 * One launch as one RunInstances. Equal launches give equal requests: EC2 compares the parameters of a token that it
 * has seen before.
 */
import { DescribeImagesCommand, DescribeInstancesCommand, RunInstancesCommand } from '@aws-sdk/client-ec2';
import type { EC2Client, RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import type { LaunchAnswer, LaunchRefusal } from '../../../core/ports/provider.ts';
import { codeOf, failureOf, refusalOf } from './failures.ts';
import { cloudInstance, ec2Tags } from './instances.ts';
import type { Ec2Launch, Ec2Machine } from './machine.ts';

/** The limit of bytes before the encoding in base64. */
export const maxUserDataBytes = 16_384;
const maxTokenLength = 64;

/** Throws RetryableError when the answer is not known. */
export async function launchOn(client: EC2Client, launch: Ec2Launch): Promise<LaunchAnswer> {
  const refused = refusedBefore(launch);
  if (refused !== undefined) return { instances: [], refused };
  try {
    const rootDevice = await rootDeviceOf(client, launch.machine);
    const { Instances = [] } = await client.send(new RunInstancesCommand(runInstancesInput(launch, rootDevice)));
    return { instances: Instances.map(cloudInstance) };
  } catch (error) {
    if (codeOf(error) === 'IdempotentInstanceTerminated') return boughtBefore(client, launch.token);
    return { instances: [], refused: refusalOf(error) };
  }
}

/**
 * An earlier call has launched, its answer was lost, and the instances have ended since. They cost, so they are the
 * answer.
 */
async function boughtBefore(client: EC2Client, token: string): Promise<LaunchAnswer> {
  const ofToken = new DescribeInstancesCommand({ Filters: [{ Name: 'client-token', Values: [token] }] });
  const { Reservations = [] } = await client.send(ofToken).catch((error: unknown) => {
    throw failureOf('describe the instances of a launch', error);
  });
  return { instances: Reservations.flatMap(({ Instances = [] }) => Instances.map(cloudInstance)) };
}

/** What EC2 would refuse, in the same words, without a call. */
function refusedBefore({ token, userData, place, machine }: Ec2Launch): LaunchRefusal | undefined {
  const refusal = (code: string, message: string): LaunchRefusal => ({ kind: 'configuration', code, message });
  const bytes = Buffer.byteLength(userData);
  if (bytes > maxUserDataBytes)
    return refusal(
      'InvalidUserData.Malformed',
      `expected at most ${maxUserDataBytes} bytes of user data, got ${bytes}`,
    );
  if (token.length > maxTokenLength)
    return refusal('InvalidParameterValue', `expected a token of at most ${maxTokenLength} characters, got "${token}"`);
  if (machine.subnets[place.zone] === undefined)
    return refusal('InvalidSubnetID.NotFound', `expected a subnet of ${place.zone} under ec2.subnets, got none`);
  return undefined;
}

/** `rootDevice`: the image's name of its disk, when the pool sets the size of the disk. */
export function runInstancesInput(
  { token, place, count, machine, userData, tags }: Ec2Launch,
  rootDevice: string | undefined,
): RunInstancesCommandInput {
  const { image, subnets, securityGroups, instanceProfile: profile, diskGiB } = machine;
  return {
    ClientToken: token,
    MinCount: 1,
    MaxCount: count,
    ImageId: image,
    InstanceType: place.type as NonNullable<RunInstancesCommandInput['InstanceType']>,
    SubnetId: subnets[place.zone],
    SecurityGroupIds: [...securityGroups],
    UserData: Buffer.from(userData).toString('base64'),
    InstanceInitiatedShutdownBehavior: 'terminate',
    // Programs that a worker sandboxes are one hop further away, so they get no credentials.
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, InstanceMetadataTags: 'enabled' },
    ...(profile !== undefined && {
      IamInstanceProfile: profile.startsWith('arn:') ? { Arn: profile } : { Name: profile },
    }),
    ...(place.market === 'spot' && {
      InstanceMarketOptions: {
        MarketType: 'spot',
        SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
      },
    }),
    ...(diskGiB !== undefined && {
      BlockDeviceMappings: [
        { DeviceName: rootDevice, Ebs: { VolumeSize: diskGiB, VolumeType: 'gp3', DeleteOnTermination: true } },
      ],
    }),
    TagSpecifications: [
      { ResourceType: 'instance', Tags: ec2Tags(tags) },
      { ResourceType: 'volume', Tags: ec2Tags(tags) },
    ],
  };
}

async function rootDeviceOf(client: EC2Client, { image, diskGiB }: Ec2Machine): Promise<string | undefined> {
  if (diskGiB === undefined) return undefined;
  const { Images = [] } = await client.send(new DescribeImagesCommand({ ImageIds: [image] }));
  return Images[0]?.RootDeviceName;
}
