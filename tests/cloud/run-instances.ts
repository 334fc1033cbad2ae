/** RunInstances: tokens, what is free, and the parameters that EC2 would refuse. */
import type { Market } from './account.ts';
import type { TestCloud } from './cloud.ts';
import type { InstanceOrder, TestInstance } from './instance.ts';
import { instanceXml } from './instance-xml.ts';
import { Ec2Error } from './protocol.ts';
import type { Form, Xml } from './protocol.ts';

/** A launch that fails leaves its token free. */
export async function runInstances(cloud: TestCloud, form: Form): Promise<Xml> {
  const token = form.text('ClientToken');
  const parameters = form.canonical(['ClientToken', 'DryRun']);
  const known = token === undefined ? undefined : cloud.tokens.get(token);
  if (known !== undefined && known.parameters !== parameters)
    throw new Ec2Error(
      'IdempotentParameterMismatch',
      `The parameters of the token ${token} are not those of its first call`,
    );
  const order = orderOf(cloud, form, token);
  if (form.text('DryRun') === 'true')
    throw new Ec2Error('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
  if (known !== undefined) return answer(boughtBefore(cloud, known.ids));

  const count = grantedCount(cloud, order, Number(form.required('MinCount')), Number(form.required('MaxCount')));
  // What is bought is counted before the next call is looked at, which may have the same token.
  const ids: string[] = [];
  if (token !== undefined) cloud.tokens.set(token, { parameters, ids });
  const instances = Array.from({ length: count }, () => cloud.launch(order));
  ids.push(...instances.map(({ id }) => id));
  await Promise.all(instances.map(({ launched }) => launched));
  return answer(instances);
}

/** Throws IdempotentInstanceTerminated when none of them is left. */
function boughtBefore(cloud: TestCloud, ids: readonly string[]): TestInstance[] {
  const instances = ids.map((id) => cloud.instance(id));
  if (instances.every(({ state }) => state === 'terminated'))
    throw new Ec2Error('IdempotentInstanceTerminated', 'The instances of the first request with this token have ended');
  return instances;
}

const answer = (instances: readonly TestInstance[]): Xml => ({
  reservationId: 'r-0c10ad00000000001',
  ownerId: '123456789012',
  instancesSet: instances.map(instanceXml),
});

/** The number of instances that are free, from `least` to `most`. Throws Ec2Error for fewer. */
function grantedCount(cloud: TestCloud, order: InstanceOrder, least: number, most: number): number {
  const { type, zone, market } = order;
  if (cloud.freeOf(market) < least)
    throw market === 'spot'
      ? new Ec2Error('MaxSpotInstanceCountExceeded', 'Max spot instance count exceeded')
      : new Ec2Error('VcpuLimitExceeded', 'You have requested more vCPU capacity than your current vCPU limit allows.');
  if (cloud.freeAt(order) < least)
    throw new Ec2Error(
      'InsufficientInstanceCapacity',
      `We currently do not have sufficient ${type} capacity in the Availability Zone you requested (${zone}).`,
      500,
    );
  return Math.min(most, cloud.freeOf(market), cloud.freeAt(order));
}

function orderOf({ account }: TestCloud, form: Form, token: string | undefined): InstanceOrder {
  const type = form.required('InstanceType');
  const subnet = form.required('SubnetId');
  const image = form.required('ImageId');
  const zone = Object.keys(account.subnets).find((name) => account.subnets[name] === subnet);
  const profile = form.text('IamInstanceProfile.Name') ?? form.text('IamInstanceProfile.Arn')?.replace(/^.*\//, '');
  const offer = account.types[type];
  if (offer === undefined) throw new Ec2Error('InvalidParameterValue', `Invalid value '${type}' for InstanceType.`);
  if (image !== account.image) throw new Ec2Error('InvalidAMIID.NotFound', `The image id '[${image}]' does not exist`);
  if (zone === undefined) throw new Ec2Error('InvalidSubnetID.NotFound', `The subnet ID '${subnet}' does not exist`);
  for (const group of form.texts('SecurityGroupId'))
    if (group !== account.securityGroup)
      throw new Ec2Error('InvalidGroup.NotFound', `The security group '${group}' does not exist`);
  if (profile !== undefined && account.profiles[profile] === undefined)
    throw new Ec2Error('InvalidParameterValue', `Value (${profile}) for parameter iamInstanceProfile.name is invalid.`);
  if (offer.zones?.includes(zone) === false)
    throw new Ec2Error('Unsupported', `Your requested instance type (${type}) is not supported in ${zone}.`);
  const userData = Buffer.from(form.text('UserData') ?? '', 'base64');
  if (userData.length > 16_384) throw new Ec2Error('InvalidParameterValue', 'User data is limited to 16384 bytes');
  return {
    type,
    zone,
    market: marketOf(form),
    image,
    subnet,
    region: account.region,
    userData: userData.toString(),
    tags: tagsOf(form),
    profile,
    token,
    showsTags: form.text('MetadataOptions.InstanceMetadataTags') === 'enabled',
  };
}

const marketOf = (form: Form): Market =>
  form.text('InstanceMarketOptions.MarketType') === 'spot' ? 'spot' : 'onDemand';

function tagsOf(form: Form): Record<string, string> {
  const specified = form.parts('TagSpecification').find((part) => part.text('ResourceType') === 'instance');
  return Object.fromEntries(
    (specified?.parts('Tag') ?? []).map((tag) => [tag.required('Key'), tag.text('Value') ?? '']),
  );
}
