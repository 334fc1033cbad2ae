/** Takes a credential of the workers' account back: the server refuses it from then on, and closes its connections. */
import type { NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { RetryableError } from '../../../core/errors.ts';
import { signedAgain } from './authority.ts';
import type { NatsAuthority } from './authority.ts';

const answerMs = 5_000;
const answer = z.object({ error: z.object({ description: z.string() }).optional() });

/** `keys`: public keys of users. The time is in seconds: what was signed within this second is revoked, too. */
export function withRevoked(kept: NatsAuthority, keys: readonly string[], nowMs: number): Promise<NatsAuthority> {
  const at = Math.floor(nowMs / 1000);
  return signedAgain(kept, { ...kept.revoked, ...Object.fromEntries(keys.map((key) => [key, at])) });
}

/**
 * Tells the running server. `system`: a connection of the system account. Throws RetryableError `NotRevoked` when the
 * server does not take it.
 */
export async function announceAccount(system: NatsConnection, { workers }: NatsAuthority): Promise<void> {
  const subject = `$SYS.REQ.ACCOUNT.${workers.id}.CLAIMS.UPDATE`;
  const reply = await system.request(subject, workers.jwt, { timeout: answerMs });
  const refused = answer.safeParse(reply.json()).data?.error;
  if (refused !== undefined)
    throw new RetryableError('NotRevoked', `the NATS server did not take the change: ${refused.description}`, {
      hint: 'petrel down, then petrel up, starts the server with it',
    });
}
