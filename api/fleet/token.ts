/** The file with which machines join a pool of this stack. */
import { InvalidInputError } from '../../core/errors.ts';
import { joiningRoles, poolName } from '../../core/wire/join.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { newJoinFile } from '../../infra/fleet/join-file.ts';
import { readStack, stackName } from '../../infra/stack/index.ts';
import { readEndpoints } from '../../infra/stack/state.ts';
import { openStore, storeUrl } from '../../infra/store/open.ts';
import { defaultStore, rememberStore } from '../../infra/store/places.ts';
import type { ApiContext } from '../context.ts';

export interface TokenRequest {
  readonly pool: string;
  /** Of the pool's workers; default: all that a machine which joins may have. */
  readonly roles?: readonly string[];
  readonly ttlMs: number;
  /** Folder or URL; default: the store of this home. */
  readonly store?: string | undefined;
}

/** Throws InvalidInputError for a bad pool, role or lifetime, and when the stack does not listen for other machines. */
export async function fleetToken({ home }: ApiContext, request: TokenRequest): Promise<JoinFile> {
  const { pool, roles = joiningRoles, ttlMs, store } = request;
  if (!poolName.safeParse(pool).success)
    throw new InvalidInputError(`--pool: expected small letters, digits and -, at most 40, got "${pool}"`);
  const known = roles.map((role) => {
    const found = joiningRoles.find((name) => name === role);
    if (found !== undefined) return found;
    throw new InvalidInputError(`--roles: expected some of ${joiningRoles.join(', ')}, got "${role}"`, {
      hint: 'trainers are processes of the control machine',
    });
  });
  const stack = readStack(home);
  const authority = readEndpoints(home)?.nats?.authority;
  const hint = 'petrel up --listen ADDRESS, with an address at which the workers reach this machine';
  if (stack === undefined || authority === undefined)
    throw new InvalidInputError('expected a running stack that other machines can reach, found none', { hint });
  const { url, ca } = stack.nats;
  if (ca === undefined)
    throw new InvalidInputError(`expected a stack that other machines can reach, got one that listens at ${url} only`, {
      hint,
    });
  const served = storeUrl(store ?? defaultStore(home));
  await openStore(served); // the machines find it, and the stack's build in it
  rememberStore(home, served);
  return newJoinFile({
    account: authority.workers,
    stack: stackName(home),
    nats: { url, ca },
    pool,
    roles: known,
    store: served,
    expiresAt: new Date(Date.now() + ttlMs),
  });
}
