/** Policies: of a store for machines that join, and of the control machine that buys them. */
import { InvalidInputError } from '../../core/errors.ts';
import { controllerPolicy } from '../../infra/fleet/ec2/controller-policy.ts';
import { storePolicy } from '../../infra/fleet/ec2/store-policy.ts';
import type { PolicyDocument } from '../../infra/fleet/ec2/store-policy.ts';
import { stackName } from '../../infra/stack/index.ts';
import { storeUrl } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { parseS3Url } from '../../infra/store/s3/location.ts';
import type { ApiContext } from '../context.ts';
import { givenRoles } from './given-roles.ts';

export type { PolicyDocument } from '../../infra/fleet/ec2/store-policy.ts';

export interface PolicyRequest {
  /** Default: the store of this home. */
  readonly store?: string | undefined;
  readonly principal?: string | undefined;
  /** What the workers do; default: they do not train. */
  readonly roles?: readonly string[] | undefined;
}

/** Throws InvalidInputError for a store that is no bucket, and for a role that there is not. */
export function workerStorePolicy(
  { home }: Pick<ApiContext, 'home'>,
  { store, principal, roles }: PolicyRequest,
): PolicyDocument {
  const url = storeUrl(store ?? defaultStore(home));
  if (!url.startsWith('s3://'))
    throw new InvalidInputError(`expected a store in a bucket, got ${url}`, {
      hint: 'petrel fleet policy --store s3://bucket/prefix; a folder is protected by the rights of its files',
    });
  return storePolicy({ ...parseS3Url(url), principal, ...(roles && { roles: givenRoles(roles) }) });
}

export interface ControllerPolicyRequest {
  /** Default: the store of this home. A folder needs no policy. */
  readonly store?: string | undefined;
  /** Default: the stack of this home. */
  readonly stack?: string | undefined;
  readonly region?: string | undefined;
  readonly role?: string | undefined;
}

/** Throws InvalidInputError for a role that is no ARN. */
export function controllerMachinePolicy(
  { home }: Pick<ApiContext, 'home'>,
  { store, stack, region, role }: ControllerPolicyRequest,
): PolicyDocument {
  if (role !== undefined && !/^arn:aws[a-z-]*:iam::\d{12}:role\/.+$/.test(role))
    throw new InvalidInputError(`--role: expected the ARN of a role, got ${role}`, {
      hint: '--role arn:aws:iam::123456789012:role/petrel-worker, as `aws iam get-role` prints it',
    });
  const url = storeUrl(store ?? defaultStore(home));
  return controllerPolicy({
    stack: stack ?? stackName(home),
    region,
    role,
    store: url.startsWith('s3://') ? parseS3Url(url) : undefined,
  });
}
