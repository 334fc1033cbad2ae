/**
 * The chain of trust of a stack's NATS server: an operator signs three accounts, an account signs its users. The server
 * knows the operator only, so a user with a new JWT can connect without a change of the server's configuration. All is
 * kept with the stack's secrets under PETREL_HOME. (NATS, "JWT authentication".)
 *
 * ```
 *   control   the streams, the control process, commands
 *     ▲ │     exchange.ts: the subjects that workers may use, as services of this account
 *     │ ▼
 *   workers   the workers of all machines; what each may publish and hear: permissions.ts
 *   system    tells of connections and of the server's health
 * ```
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Account, KeyPair, User } from '@nats-io/jwt';
import { offered, takenFrom } from '../exchange.ts';

const account = z.object({ id: z.string(), jwt: z.string(), seed: z.string() });

/** JWTs, public keys (`id`) and private keys (`seed`). A seed is enough to sign. */
export const natsAuthority = z.object({
  operatorJwt: z.string(),
  /** Signs the accounts again when a user is revoked. */
  operatorSeed: z.string(),
  control: account,
  workers: account,
  system: account,
  /** Secret of the subjects that the accounts exchange; in the file of an earlier build it may be absent. */
  exchange: z.string().optional(),
  /** Users of the workers' account that were revoked: public key and time, in seconds. */
  revoked: z.record(z.string(), z.int()).optional(),
});
export type NatsAuthority = Readonly<z.infer<typeof natsAuthority>>;

/** No limit. */
const unlimited = -1;
const streams = { mem_storage: unlimited, disk_storage: unlimited, streams: unlimited, consumer: unlimited };

export async function newAuthority(): Promise<NatsAuthority> {
  const { createAccount, createOperator } = await import('@nats-io/jwt');
  const [control, workers, system] = [createAccount(), createAccount(), createAccount()];
  return sign({ operator: createOperator(), control, workers, system });
}

/** The authority with accounts as this build needs them: one of another build may exchange other subjects. */
export async function currentAuthority(kept: NatsAuthority): Promise<NatsAuthority> {
  return kept.exchange === exchangeId() ? kept : signedAgain(kept, kept.revoked);
}

/** The same keys, with accounts as this build needs them. */
export async function signedAgain(kept: NatsAuthority, revoked: NatsAuthority['revoked']): Promise<NatsAuthority> {
  const { fromSeed } = await import('@nats-io/jwt');
  const keyOf = (seed: string) => fromSeed(new TextEncoder().encode(seed));
  const { operatorSeed, control, workers, system } = kept;
  const keys = {
    operator: keyOf(operatorSeed),
    control: keyOf(control.seed),
    workers: keyOf(workers.seed),
    system: keyOf(system.seed),
  };
  return sign(keys, revoked);
}

async function sign(
  keys: Readonly<Record<'operator' | 'control' | 'workers' | 'system', KeyPair>>,
  revoked?: NatsAuthority['revoked'],
): Promise<NatsAuthority> {
  const { encodeAccount, encodeOperator } = await import('@nats-io/jwt');
  const { operator, control, workers, system } = keys;
  const signed = async (name: string, key: KeyPair, content: Partial<Account>) => ({
    id: key.getPublicKey(),
    jwt: await encodeAccount(name, key, content, { signer: operator }),
    seed: text(key.getSeed()),
  });
  return {
    operatorJwt: await encodeOperator('petrel', operator, { system_account: system.getPublicKey() }),
    operatorSeed: text(operator.getSeed()),
    control: await signed('control', control, { limits: { ...connections, ...streams }, exports: offered }),
    workers: await signed('workers', workers, {
      limits: connections,
      imports: takenFrom(control.getPublicKey()),
      ...(revoked && { revocations: revoked }),
    }),
    system: await signed('system', system, { limits: connections }),
    exchange: exchangeId(),
    ...(revoked && { revoked }),
  };
}

const exchangeId = (): string => createHash('sha256').update(JSON.stringify(offered)).digest('hex').slice(0, 8);

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

const payload = z.object({ name: z.string() });

/** The name for which a user's JWT was issued. The server has checked its signature. */
export function nameInJwt(jwt = ''): string | undefined {
  const [, claims = ''] = jwt.split('.');
  try {
    return payload.safeParse(JSON.parse(Buffer.from(claims, 'base64url').toString())).data?.name;
  } catch {
    return undefined; // not a JWT
  }
}

const text = (seed: Uint8Array): string => Buffer.from(seed).toString();
