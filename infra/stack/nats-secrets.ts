/** The secrets of a new stack's NATS server. */
import { issueUser, newAuthority } from '../nats/authority.ts';
import { newNatsKey, publicNkey } from '../nats/nkey.ts';
import type { NatsCredential } from '../nats/nkey.ts';
import type { NatsSecrets } from './state.ts';

/** Name of the stack's own user, which may do everything; in events of the server. */
export const stackUser = 'stack';

export async function newNatsSecrets(): Promise<NatsSecrets> {
  const authority = await newAuthority();
  const [stack, system] = await Promise.all([credentialOf(authority.account), credentialOf(authority.system)]);
  return { authority, stack, system };
}

async function credentialOf(account: { readonly seed: string }): Promise<NatsCredential> {
  const key = newNatsKey();
  return { key, jwt: await issueUser(account, { name: stackUser, key: publicNkey(key) }) };
}
