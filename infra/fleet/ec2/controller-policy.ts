/**
 * The least that a control machine must be allowed to buy workers on EC2, as a policy of AWS for its identity: it
 * starts instances with its stack's tag, ends only those, and hands on one role.
 */
import type { PolicyDocument, Statement } from './store-policy.ts';

/** The tag by which a stack finds its instances, and may end them. */
export const stackTag = 'petrel:stack';

export interface ControllerPlace {
  /** Value of the tag. */
  readonly stack: string;
  /** Absent: any region. */
  readonly region?: string | undefined;
  /** ARN of the role in the pools' instance profile. Absent: the pools have none. */
  readonly role?: string | undefined;
  /** The store, when it is a bucket. `prefix` is empty, or ends in "/". */
  readonly store?: { readonly bucket: string; readonly prefix: string } | undefined;
}

/** EC2 knows no smaller scope for questions than all. */
const questions = [
  'DescribeAvailabilityZones',
  'DescribeImages',
  'DescribeInstances',
  'DescribeInstanceTypeOfferings',
  'DescribeInstanceTypes',
  'DescribeSecurityGroups',
  'DescribeSpotPriceHistory',
  'DescribeSubnets',
].map((name) => `ec2:${name}`);

/** What a launch uses or makes beside the instance and its disk. */
const parts = ['image', 'network-interface', 'security-group', 'snapshot', 'spot-instances-request', 'subnet'];
const bought = ['instance', 'volume'];

export function controllerPolicy({ stack, region = '*', role, store }: ControllerPlace): PolicyDocument {
  const ofEc2 = (kinds: readonly string[]) => kinds.map((kind) => `arn:aws:ec2:${region}:*:${kind}/*`);
  const allow = (
    Sid: string,
    Action: readonly string[],
    Resource: readonly string[],
    equals?: Readonly<Record<string, string>>,
  ): Statement => ({
    Sid,
    Effect: 'Allow',
    Action,
    Resource,
    ...(equals !== undefined && { Condition: { StringEquals: equals } }),
  });
  return {
    Version: '2012-10-17',
    Statement: [
      allow('Ask', questions, ['*']),
      allow('LaunchOwn', ['ec2:RunInstances'], ofEc2(bought), { [`aws:RequestTag/${stackTag}`]: stack }),
      allow('LaunchWith', ['ec2:RunInstances'], ofEc2(parts)),
      allow('TagAtLaunch', ['ec2:CreateTags'], ofEc2(bought), { 'ec2:CreateAction': 'RunInstances' }),
      allow('EndOwn', ['ec2:TerminateInstances'], ofEc2(['instance']), { [`ec2:ResourceTag/${stackTag}`]: stack }),
      ...(role === undefined
        ? []
        : [allow('HandOnRole', ['iam:PassRole'], [role], { 'iam:PassedToService': 'ec2.amazonaws.com' })]),
      ...(store === undefined ? [] : storeStatements(store)),
    ],
  };
}

/** The control machine decides, and removes what no run needs. */
function storeStatements({ bucket, prefix }: NonNullable<ControllerPlace['store']>): Statement[] {
  const objects = ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'];
  return [
    {
      Sid: 'ListStore',
      Effect: 'Allow',
      Action: ['s3:ListBucket', 's3:ListBucketMultipartUploads'],
      Resource: [`arn:aws:s3:::${bucket}`],
    },
    {
      Sid: 'KeepStore',
      Effect: 'Allow',
      Action: [...objects, 's3:ListMultipartUploadParts'],
      Resource: [`arn:aws:s3:::${bucket}/${prefix}*`],
    },
  ];
}
