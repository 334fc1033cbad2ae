/** How EC2 starts an instance of a pool: `ec2` in fleet.yaml. */
import { z } from 'zod';
import { InvalidInputError } from '../../../core/errors.ts';
import type { Launch, ProviderMachine } from '../../../core/ports/provider.ts';

const ec2Machine = z.object({
  kind: z.literal('ec2'),
  region: z.string(),
  /** AMI with Node and nothing else. */
  image: z.string(),
  /** Subnet by zone. */
  subnets: z.record(z.string(), z.string()),
  securityGroups: z.array(z.string()),
  /** Instance profile: the store's credentials. */
  instanceProfile: z.string().optional(),
  diskGiB: z.number().optional(),
});
export type Ec2Machine = Readonly<z.infer<typeof ec2Machine>>;

/** A launch of an instance of EC2. */
export type Ec2Launch = Launch & { readonly machine: Ec2Machine };

/** Throws InvalidInputError for a machine of another cloud. */
export function ec2MachineOf(machine: ProviderMachine): Ec2Machine {
  const parsed = ec2Machine.safeParse(machine);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: 'no machine' };
  throw new InvalidInputError(`expected a machine of EC2, got ${path.join('.')}: ${message}`, {
    hint: 'petrel fleet apply with provider: ec2 and its section ec2',
  });
}
