/** The policy of a store for machines that join. */
import { InvalidInputError } from '../../core/errors.ts';
import { storePolicy } from '../../core/fleet/store-policy.ts';
import type { PolicyDocument } from '../../core/fleet/store-policy.ts';
import { storeUrl } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { parseS3Url } from '../../infra/store/s3/location.ts';
import type { ApiContext } from '../context.ts';

export interface PolicyRequest {
  /** Default: the store of this home. */
  readonly store?: string | undefined;
  readonly principal?: string | undefined;
}

/** Throws InvalidInputError for a store that is no bucket. */
export function fleetPolicy({ home }: Pick<ApiContext, 'home'>, { store, principal }: PolicyRequest): PolicyDocument {
  const url = storeUrl(store ?? defaultStore(home));
  if (!url.startsWith('s3://'))
    throw new InvalidInputError(`expected a store in a bucket, got ${url}`, {
      hint: 'petrel fleet policy --store s3://bucket/prefix; a folder is protected by the rights of its files',
    });
  return storePolicy({ ...parseS3Url(url), principal });
}
