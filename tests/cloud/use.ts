/** How tests use a cloud that is not AWS. */
import type { Ec2Machine } from '../../core/ports/provider.ts';
import type { TestCloud } from './cloud.ts';

/** Any credentials will do; without some the SDK sends nothing. */
export const testCredentials = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };

export function useTestCredentials(): void {
  Object.assign(process.env, testCredentials);
}

/** A pool that is in order there. */
export function machineOf({ account }: Pick<TestCloud, 'account'>): Ec2Machine {
  const { region, image, subnets, securityGroup } = account;
  return { region, image, subnets, securityGroups: [securityGroup] };
}
