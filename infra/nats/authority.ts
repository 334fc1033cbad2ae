/**
 * The chain of trust of a stack's NATS server: an operator signs two accounts, an account signs its users. The server knows
 * the operator only, so a user with a new JWT can connect without a change of the server's configuration. All is kept
 * with the stack's secrets under PETREL_HOME. (NATS, "JWT authentication".)
 */
import { z } from 'zod';
import type { User } from '@nats-io/jwt';

/** JWTs, public keys (`id`) and private keys (`seed`). Who has a seed can sign. */
export const natsAuthority = z.object({
  operatorJwt: z.string(),
  /** Signs the accounts again when a user is revoked. */
  operatorSeed: z.string(),
  account: z.object({ id: z.string(), jwt: z.string(), seed: z.string() }),
  system: z.object({ id: z.string(), jwt: z.string(), seed: z.string() }),
});
export type NatsAuthority = Readonly<z.infer<typeof natsAuthority>>;

/** No limit. */
const unlimited = -1;
const streams = { mem_storage: unlimited, disk_storage: unlimited, streams: unlimited, consumer: unlimited };

export async function newAuthority(): Promise<NatsAuthority> {
  const { createAccount, createOperator, encodeAccount, encodeOperator } = await import('@nats-io/jwt');
  const [operator, account, system] = [createOperator(), createAccount(), createAccount()];
  const systemId = system.getPublicKey();
  const signed = { signer: operator };
  const [operatorJwt, accountJwt, systemJwt] = await Promise.all([
    encodeOperator('petrel', operator, { system_account: systemId }),
    encodeAccount('petrel', account, { limits: { ...connections, ...streams } }, signed),
    encodeAccount('system', system, { limits: connections }, signed),
  ]);
  return {
    operatorJwt,
    operatorSeed: text(operator.getSeed()),
    account: { id: account.getPublicKey(), jwt: accountJwt, seed: text(account.getSeed()) },
    system: { id: systemId, jwt: systemJwt, seed: text(system.getSeed()) },
  };
}

const connections = {
  subs: unlimited,
  data: unlimited,
  payload: unlimited,
  imports: unlimited,
  exports: unlimited,
  wildcards: true,
  conn: unlimited,
  leaf: unlimited,
};

export interface UserClaims {
  /** Shown by the server in events; the part of a machine's connection that the machine cannot choose. */
  readonly name: string;
  /** Public key: `publicNkey`. */
  readonly key: string;
  /** Absent: everything. */
  readonly permissions?: Partial<User>;
  readonly expiresAt?: Date;
}

/** The JWT of a user of this account. */
export async function issueUser(
  account: { readonly seed: string },
  { name, key, permissions = {}, expiresAt }: UserClaims,
): Promise<string> {
  const { encodeUser } = await import('@nats-io/jwt');
  const options = expiresAt === undefined ? {} : { exp: Math.floor(expiresAt.getTime() / 1000) };
  return encodeUser(name, key, account.seed, permissions, options);
}

const text = (seed: Uint8Array): string => Buffer.from(seed).toString();
