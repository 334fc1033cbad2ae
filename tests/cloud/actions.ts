/** The actions of the EC2 API that petrel uses, and no others. */
import type { TestCloud } from './cloud.ts';
import { instanceXml, stateXml } from './instance-xml.ts';
import type { TestInstance } from './instance.ts';
import { Ec2Error } from './protocol.ts';
import type { Form, Xml } from './protocol.ts';
import { runInstances } from './run-instances.ts';

export type Action = (cloud: TestCloud, form: Form) => Xml | Promise<Xml>;

export const actions: Readonly<Record<string, Action>> = {
  RunInstances: runInstances,
  TerminateInstances: terminateInstances,
  DescribeInstances: (cloud, form) => {
    const wanted = form.texts('InstanceId').map((id) => visible(cloud, id));
    const found = (
      wanted.length > 0 ? wanted : [...cloud.instances.values()].filter((one) => cloud.isVisible(one))
    ).filter(matching(form, instanceValues));
    const { page, nextToken } = paged(cloud, form, found);
    return {
      reservationSet: page.map((one) => ({ reservationId: `r-${one.id.slice(2)}`, instancesSet: [instanceXml(one)] })),
      nextToken,
    };
  },
  DescribeSpotPriceHistory: (cloud, form) => {
    const start = Date.parse(form.text('StartTime') ?? '') || 0;
    const types = form.texts('InstanceType');
    const { page, nextToken } = paged(
      cloud,
      form,
      cloud.prices.filter(
        (price) =>
          (types.length === 0 || types.includes(price.type)) &&
          // A price holds until the next one, so the one before the start counts too.
          !cloud.prices.some(
            (later) =>
              later !== price &&
              later.type === price.type &&
              later.zone === price.zone &&
              later.since > price.since &&
              later.since <= start,
          ),
      ),
    );
    return {
      spotPriceHistorySet: page.map(({ type, zone, usdPerHour, since }) => ({
        instanceType: type,
        availabilityZone: zone,
        spotPrice: usdPerHour.toFixed(6),
        productDescription: 'Linux/UNIX',
        timestamp: new Date(since).toISOString(),
      })),
      nextToken: nextToken ?? '',
    };
  },
  DescribeAvailabilityZones: ({ account }) => ({
    availabilityZoneInfo: Object.keys(account.subnets).map((zoneName) => ({
      zoneName,
      regionName: account.region,
      zoneState: 'available',
    })),
  }),
  DescribeInstanceTypeOfferings: (cloud, form) => {
    const { types, subnets } = cloud.account;
    const offers = Object.entries(types).flatMap(([type, { zones = Object.keys(subnets) }]) =>
      zones.map((zone) => ({ type, zone })),
    );
    const found = offers.filter(matching(form, ({ type, zone }) => ({ 'instance-type': type, location: zone })));
    const { page, nextToken } = paged(cloud, form, found);
    return {
      instanceTypeOfferingSet: page.map(({ type, zone }) => ({
        instanceType: type,
        location: zone,
        locationType: 'availability-zone',
      })),
      nextToken,
    };
  },
  DescribeInstanceTypes: ({ account }, form) => ({
    instanceTypeSet: form.texts('InstanceType').map((type) => {
      const known = account.types[type];
      if (known === undefined)
        throw new Ec2Error('InvalidInstanceType', `The following supplied instance types do not exist: [${type}]`);
      return {
        instanceType: type,
        processorInfo: { supportedArchitectures: [known.architecture ?? 'x86_64'] },
      };
    }),
  }),
  DescribeImages: ({ account }, form) => ({
    imagesSet: form.texts('ImageId').map((image) => {
      if (image !== account.image)
        throw new Ec2Error('InvalidAMIID.NotFound', `The image id '[${image}]' does not exist`);
      return {
        imageId: image,
        imageState: 'available',
        architecture: 'x86_64',
        rootDeviceName: '/dev/xvda',
        blockDeviceMapping: [{ deviceName: '/dev/xvda', ebs: { volumeSize: 8 } }],
      };
    }),
  }),
  DescribeSubnets: ({ account }, form) => ({
    subnetSet: form.texts('SubnetId').map((subnetId) => {
      const zone = Object.keys(account.subnets).find((name) => account.subnets[name] === subnetId);
      if (zone === undefined)
        throw new Ec2Error('InvalidSubnetID.NotFound', `The subnet ID '${subnetId}' does not exist`);
      return { subnetId, availabilityZone: zone, vpcId: account.vpc, state: 'available' };
    }),
  }),
  DescribeSecurityGroups: ({ account }, form) => ({
    securityGroupInfo: form.texts('GroupId').map((groupId) => {
      if (groupId !== account.securityGroup)
        throw new Ec2Error('InvalidGroup.NotFound', `The security group '${groupId}' does not exist`);
      return { groupId, vpcId: account.vpc };
    }),
  }),
};

/** EC2 ends all or, when it does not know one of them, none. It answers while the machines still end. */
function terminateInstances(cloud: TestCloud, form: Form): Xml {
  const instances = form.texts('InstanceId').map((id) => visible(cloud, id));
  const before = instances.map(({ state }) => state);
  for (const instance of instances) void instance.end('Client.UserInitiatedShutdown');
  return {
    instancesSet: instances.map(({ id, state }, index) => ({
      instanceId: id,
      currentState: stateXml(state),
      previousState: stateXml(before[index] ?? state),
    })),
  };
}

function visible(cloud: TestCloud, id: string): TestInstance {
  const found = cloud.instances.get(id);
  if (found === undefined || !cloud.isVisible(found))
    throw new Ec2Error('InvalidInstanceID.NotFound', `The instance ID '${id}' does not exist`);
  return found;
}

function instanceValues({ id, state, order }: TestInstance): Record<string, string> {
  return {
    'instance-id': id,
    'instance-state-name': state,
    ...(order.token !== undefined && { 'client-token': order.token }),
    ...Object.fromEntries(Object.entries(order.tags).map(([key, value]) => [`tag:${key}`, value])),
  };
}

/** Filters are joined by "and", the values of one by "or". A name that no item has matches nothing. */
function matching<T>(form: Form, valuesOf: (item: T) => Readonly<Record<string, string>>): (item: T) => boolean {
  const filters = form
    .parts('Filter')
    .map((filter) => ({ name: filter.required('Name'), values: filter.texts('Value') }));
  return (item) => filters.every(({ name, values }) => values.includes(valuesOf(item)[name] ?? ''));
}

/** `nextToken`: where the next page begins. */
function paged<T>(
  { settings }: TestCloud,
  form: Form,
  items: readonly T[],
): { readonly page: readonly T[]; readonly nextToken: string | undefined } {
  const from = Number(form.text('NextToken') ?? 0);
  const to = from + Math.min(settings.pageSize, Number(form.text('MaxResults') ?? Infinity));
  return { page: items.slice(from, to), nextToken: to < items.length ? String(to) : undefined };
}
