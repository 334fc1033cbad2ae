/**
 * Does a policy of AWS allow a call? As IAM decides it: each resource that the call touches needs a statement that
 * allows it, and none that denies it. Knows what infra/fleet/ec2/controller-policy.ts uses: `*` in names, and
 * StringEquals.
 */
import type { PolicyDocument, Statement } from '../../infra/fleet/ec2/store-policy.ts';
import type { TestCloud } from './cloud.ts';
import { Ec2Error } from './protocol.ts';
import type { Form } from './protocol.ts';

/** One resource that a call touches, with what conditions can ask about. */
interface Touched {
  readonly action: string;
  readonly arn: string;
  readonly keys?: Readonly<Record<string, string>>;
}

/** Throws UnauthorizedOperation. */
export function authorize(policy: PolicyDocument, cloud: TestCloud, action: string, form: Form): void {
  for (const touched of touchedBy(cloud, action, form)) {
    const matching = policy.Statement.filter((statement) => matches(statement, touched));
    if (matching.some(({ Effect }) => Effect === 'Deny') || !matching.some(({ Effect }) => Effect === 'Allow'))
      throw new Ec2Error(
        'UnauthorizedOperation',
        `You are not authorized to perform this operation. ${touched.action} on resource ${touched.arn}`,
        403,
      );
  }
}

function matches({ Action, Resource, Condition }: Statement, { action, arn, keys = {} }: Touched): boolean {
  const fits = (patterns: readonly string[], text: string) => patterns.some((pattern) => isLike(pattern, text));
  const equals = Object.entries(Condition?.StringEquals ?? {});
  return fits(Action, action) && fits(Resource, arn) && equals.every(([key, value]) => keys[key] === value);
}

function isLike(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}

function touchedBy(cloud: TestCloud, action: string, form: Form): Touched[] {
  const arn = (name: string) => `arn:aws:ec2:${cloud.account.region}:123456789012:${name}`;
  if (action === 'RunInstances') return touchedByLaunch(form, arn);
  if (action !== 'TerminateInstances') return [{ action: `ec2:${action}`, arn: '*' }];
  return form.texts('InstanceId').map((id) => ({
    action: 'ec2:TerminateInstances',
    arn: arn(`instance/${id}`),
    keys: prefixed('ec2:ResourceTag/', cloud.instances.get(id)?.order.tags ?? {}),
  }));
}

function touchedByLaunch(form: Form, arn: (name: string) => string): Touched[] {
  const profile = form.text('IamInstanceProfile.Name') ?? form.text('IamInstanceProfile.Arn');
  const tagged = form.parts('TagSpecification').map((part) => ({
    kind: part.required('ResourceType'),
    tags: Object.fromEntries(part.parts('Tag').map((tag) => [tag.required('Key'), tag.text('Value') ?? ''])),
  }));
  const used = [
    `image/${form.required('ImageId')}`,
    `subnet/${form.required('SubnetId')}`,
    ...form.texts('SecurityGroupId').map((id) => `security-group/${id}`),
    'network-interface/*',
    ...(form.text('InstanceMarketOptions.MarketType') === 'spot' ? ['spot-instances-request/*'] : []),
  ];
  const bought = ['instance', 'volume'].map((kind) => ({
    action: 'ec2:RunInstances',
    arn: arn(`${kind}/*`),
    keys: prefixed('aws:RequestTag/', tagged.find((one) => one.kind === kind)?.tags ?? {}),
  }));
  return [
    ...bought,
    ...used.map((name) => ({ action: 'ec2:RunInstances', arn: arn(name) })),
    ...tagged.map(({ kind }) => ({
      action: 'ec2:CreateTags',
      arn: arn(`${kind}/*`),
      keys: { 'ec2:CreateAction': 'RunInstances' },
    })),
    ...(profile === undefined
      ? []
      : [{ action: 'iam:PassRole', arn: roleOf(profile), keys: { 'iam:PassedToService': 'ec2.amazonaws.com' } }]),
  ];
}

/** The role of a profile, which has the same name in this account. */
export const roleOf = (profile: string): string => `arn:aws:iam::123456789012:role/${profile.replace(/^.*\//, '')}`;

const prefixed = (prefix: string, tags: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(tags).map(([key, value]) => [prefix + key, value]));
