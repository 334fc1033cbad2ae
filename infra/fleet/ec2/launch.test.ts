import { describe, expect, it } from 'vitest';
import type { Ec2Launch } from './machine.ts';
import { runInstancesInput } from './launch.ts';

const launch: Ec2Launch = {
  token: 'a'.repeat(64),
  place: { zone: 'us-east-1a', type: 'c7i.2xlarge', market: 'spot', usdPerHour: 0.1 },
  count: 3,
  machine: {
    kind: 'ec2',
    region: 'us-east-1',
    image: 'ami-1',
    subnets: { 'us-east-1a': 'subnet-1' },
    securityGroups: ['sg-1'],
  },
  userData: '#!/bin/bash\necho "Grüße"\n',
  tags: { stack: 'lab', pool: 'samplers', launch: 7, expires: '2026-12-01T00:00:00.000Z' },
};

describe('the request for a launch', () => {
  it('is the same for the same launch', () => {
    expect(runInstancesInput(launch, undefined)).toEqual(runInstancesInput(structuredClone(launch), undefined));
  });

  it('buys at its place, up to its number, under its token', () => {
    expect(runInstancesInput(launch, undefined)).toMatchObject({
      ClientToken: launch.token,
      MinCount: 1,
      MaxCount: 3,
      InstanceType: 'c7i.2xlarge',
      SubnetId: 'subnet-1',
      SecurityGroupIds: ['sg-1'],
    });
  });

  it('lets nothing stay behind: a shutdown and an interruption end the instance, and its disk goes with it', () => {
    const input = runInstancesInput({ ...launch, machine: { ...launch.machine, diskGiB: 40 } }, '/dev/xvda');
    expect(input.InstanceInitiatedShutdownBehavior).toBe('terminate');
    expect(input.InstanceMarketOptions).toEqual({
      MarketType: 'spot',
      SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
    });
    const disk = { VolumeSize: 40, VolumeType: 'gp3', DeleteOnTermination: true };
    expect(input.BlockDeviceMappings).toEqual([{ DeviceName: '/dev/xvda', Ebs: disk }]);
  });

  it('asks for no spot instance on demand, and sets no price', () => {
    const onDemand = { ...launch.place, market: 'onDemand' } as const;
    expect(runInstancesInput({ ...launch, place: onDemand }, undefined)).not.toHaveProperty('InstanceMarketOptions');
    expect(JSON.stringify(runInstancesInput(launch, undefined))).not.toContain('MaxPrice');
  });

  it('requires tokens of the metadata service, one hop away', () => {
    const { MetadataOptions } = runInstancesInput(launch, undefined);
    expect(MetadataOptions).toMatchObject({ HttpTokens: 'required', HttpPutResponseHopLimit: 1 });
  });

  it('tags instances and disks with the stack, the pool, the launch and the expiry', () => {
    const tags = {
      'petrel:stack': 'lab',
      'petrel:pool': 'samplers',
      'petrel:launch': '7',
      'petrel:expires': '2026-12-01T00:00:00.000Z',
      Name: 'petrel samplers',
    };
    const { TagSpecifications = [] } = runInstancesInput(launch, undefined);
    expect(TagSpecifications.map(({ ResourceType }) => ResourceType)).toEqual(['instance', 'volume']);
    for (const { Tags = [] } of TagSpecifications)
      expect(Object.fromEntries(Tags.map(({ Key, Value }) => [Key, Value]))).toEqual(tags);
  });

  it('carries the user data in base64, and the profile by name or by ARN', () => {
    const input = (instanceProfile: string) =>
      runInstancesInput({ ...launch, machine: { ...launch.machine, instanceProfile } }, undefined);
    expect(Buffer.from(input('worker').UserData ?? '', 'base64').toString()).toBe(launch.userData);
    expect(input('worker').IamInstanceProfile).toEqual({ Name: 'worker' });
    const arn = 'arn:aws:iam::123456789012:instance-profile/worker';
    expect(input(arn).IamInstanceProfile).toEqual({ Arn: arn });
  });
});
