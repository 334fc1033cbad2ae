/**
 * What an account of the test cloud has: a network, an image, types of instances, how many of them are free, and what
 * they cost.
 */

export type Market = 'spot' | 'onDemand';

export interface RoleCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

export interface Account {
  readonly region: string;
  readonly vpc: string;
  /** Subnet by zone. */
  readonly subnets: Readonly<Record<string, string>>;
  readonly securityGroup: string;
  readonly image: string;
  /** The instance types. A type is offered in its `zones` only; without `zones`, in all. */
  readonly types: Readonly<Record<string, { readonly architecture?: string; readonly zones?: readonly string[] }>>;
  /**
   * Environment of the machines of an instance profile, by its name: it may stand for the credentials of the profile's
   * role.
   */
  readonly profiles: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The credentials of a profile's role, which the metadata service gives out as on EC2, by profile. */
  readonly credentials: Readonly<Record<string, RoleCredentials>>;
}

export const usualAccount: Account = {
  region: 'us-east-1',
  vpc: 'vpc-0c10ad00000000001',
  subnets: {
    'us-east-1a': 'subnet-0a00000000000001a',
    'us-east-1b': 'subnet-0a00000000000001b',
    'us-east-1c': 'subnet-0a00000000000001c',
  },
  securityGroup: 'sg-0c10ad00000000001',
  image: 'ami-0c10ad00000000001',
  types: { 'c7i.2xlarge': {}, 'm7i.2xlarge': {}, 'c7g.2xlarge': { architecture: 'arm64' } },
  profiles: { worker: {} },
  credentials: {},
};

export interface PoolOfMachines {
  readonly type: string;
  readonly zone: string;
  readonly market: Market;
}

export const poolKey = ({ type, zone, market }: PoolOfMachines): string => `${type} ${zone} ${market}`;
