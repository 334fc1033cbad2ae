/** Instances as EC2 describes them, and the tags by which a stack finds its own. */
import type { Instance, Tag } from '@aws-sdk/client-ec2';
import { stackTag } from './controller-policy.ts';
import type { CloudInstance, InstanceTags } from '../../../core/ports/provider.ts';

export function ec2Tags({ stack, pool, launch, expires }: InstanceTags): Tag[] {
  const tags = { [stackTag]: stack, 'petrel:pool': pool, 'petrel:launch': String(launch), 'petrel:expires': expires };
  return [...Object.entries(tags).map(([Key, Value]) => ({ Key, Value })), { Key: 'Name', Value: `petrel ${pool}` }];
}

/** EC2 writes all tags with the launch. Those that somebody has removed since are empty, and the launch is -1. */
function petrelTags(tags: readonly Tag[] = []): InstanceTags {
  const value = (key: string) => tags.find(({ Key }) => Key === key)?.Value ?? '';
  const launch = value('petrel:launch');
  return {
    stack: value(stackTag),
    pool: value('petrel:pool'),
    launch: /^\d+$/.test(launch) ? Number(launch) : -1,
    expires: value('petrel:expires'),
  };
}

/** A stopped instance has not ended: its disk still costs. */
const states: Readonly<Record<string, CloudInstance['state']>> = {
  pending: 'pending',
  running: 'running',
  'shutting-down': 'ending',
  stopping: 'ending',
  stopped: 'ending',
  terminated: 'ended',
};

export function cloudInstance(instance: Instance): CloudInstance {
  const reason = instance.StateReason?.Code ?? '';
  return {
    id: instance.InstanceId ?? '',
    type: instance.InstanceType ?? '',
    zone: instance.Placement?.AvailabilityZone ?? '',
    market: instance.InstanceLifecycle === 'spot' ? 'spot' : 'onDemand',
    state: states[instance.State?.Name ?? ''] ?? 'pending',
    ...(reason !== '' && { reason }),
    launchedAt: instance.LaunchTime?.toISOString() ?? '',
    tags: petrelTags(instance.Tags),
    ...(instance.StateReason?.Code === 'Server.SpotInstanceTermination' && { interrupted: true }),
  };
}
