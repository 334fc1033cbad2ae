/** The secrets of a stack's NATS server. */
import { roles } from '../../core/roles.ts';
import { inboxOf } from '../../core/wire/worker-identity.ts';
import { currentAuthority, issueUser, newAuthority } from '../nats/access/authority.ts';
import type { UserClaims } from '../nats/access/authority.ts';
import type { HasNats } from '../nats/connection.ts';
import { newNatsKey, publicNkey } from '../nats/nkey.ts';
import type { NatsCredential } from '../nats/nkey.ts';
import { workerPermissions } from '../nats/access/permissions.ts';
import type { NatsSecrets, StackInfo } from './state.ts';

/** Name of the stack's own user, which may do everything; in events of the server. */
const stackUser = 'stack';

/** `instance`: of this machine. */
export async function newNatsSecrets(instance: string): Promise<NatsSecrets> {
  const authority = await newAuthority();
  const [stack, system, workers] = await Promise.all([
    credentialOf(authority.control, { name: stackUser }),
    credentialOf(authority.system, { name: stackUser }),
    workersOf(authority.workers, instance),
  ]);
  return { authority, stack, system, workers };
}

/**
 * The same secrets for this build, and for a machine that has got another name: its workers need another credential.
 */
export async function currentSecrets(kept: NatsSecrets, instance: string): Promise<NatsSecrets> {
  const authority = await currentAuthority(kept.authority);
  const isRenamed = kept.workers.instance !== instance;
  if (authority === kept.authority && !isRenamed) return kept;
  const workers = isRenamed ? await workersOf(authority.workers, instance) : kept.workers;
  return { ...kept, authority, workers };
}

/** How the stack's own workers on this machine reach NATS. Their credential permits what a worker needs. */
export function asWorker({ nats }: Pick<StackInfo, 'nats'>, instance: string): HasNats {
  // On a cluster of others the stack has one account, in which the workers ask JetStream itself.
  if (nats.ofOthers) return { nats: { ...nats, jobsApi: '$JS.API', inbox: inboxOf({ instance }) } };
  return { nats: { url: nats.url, ca: nats.ca, credential: nats.workers, inbox: inboxOf({ instance }) } };
}

/** The workers of this machine may have any role, because the owner of the machine owns the stack. */
async function workersOf(account: { readonly seed: string }, instance: string): Promise<NatsSecrets['workers']> {
  const permissions = workerPermissions(instance, roles);
  return { instance, ...(await credentialOf(account, { name: instance, permissions })) };
}

async function credentialOf(
  account: { readonly seed: string },
  claims: Omit<UserClaims, 'key'>,
): Promise<NatsCredential> {
  const key = newNatsKey();
  return { key, jwt: await issueUser(account, { ...claims, key: publicNkey(key) }) };
}
