/** An instance as the API describes it. */
import type { InstanceState, TestInstance } from './instance.ts';
import type { Xml } from './protocol.ts';

const codes: Readonly<Record<InstanceState, number>> = { pending: 0, running: 16, 'shutting-down': 32, terminated: 48 };

export const stateXml = (name: InstanceState): Xml => ({ code: codes[name], name });

export function instanceXml(instance: TestInstance): Xml {
  const { id, order, state, launchedAt, endCode } = instance;
  return {
    instanceId: id,
    imageId: order.image,
    instanceState: stateXml(state),
    instanceType: order.type,
    launchTime: new Date(launchedAt).toISOString(),
    placement: { availabilityZone: order.zone },
    subnetId: order.subnet,
    clientToken: order.token,
    ...(order.market === 'spot' && { instanceLifecycle: 'spot' }),
    ...(endCode !== undefined && { stateReason: { code: endCode, message: endCode } }),
    tagSet: Object.entries(order.tags).map(([key, value]) => ({ key, value })),
  };
}
