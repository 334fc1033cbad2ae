/** How tests use a cloud that is not AWS. */
import type { Ec2Machine } from '../../infra/fleet/ec2/machine.ts';
import type { TestCloud } from './cloud.ts';

/** Any credentials will do; without some the SDK sends nothing. */
const testCredentials = {
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  // the pinned SDK version runs on this Node
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
};

export function useTestCredentials(): void {
  Object.assign(process.env, testCredentials);
}

/** A pool that is in order there. */
export function machineOf({ account }: Pick<TestCloud, 'account'>): Ec2Machine {
  const { region, image, subnets, securityGroup } = account;
  return { kind: 'ec2', region, image, subnets, securityGroups: [securityGroup] };
}
