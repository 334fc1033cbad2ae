/** Takes machines and tokens back. */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { connectSystem } from '../../infra/nats/connection.ts';
import { announceAccount, withRevoked } from '../../infra/nats/access/revocation.ts';
import { fleetTokens, joinedMachines } from '../../infra/stack/fleet-register.ts';
import { readStack } from '../../infra/stack/index.ts';
import { readEndpoints, writeEndpoints } from '../../infra/stack/state.ts';
import type { ApiContext } from '../context.ts';

/** Names of what was revoked. */
export interface Revoked {
  readonly machines: readonly string[];
  readonly tokens: readonly string[];
}

/**
 * `what`: a machine, a token, or a pool, which is all its machines and tokens. The running server closes their
 * connections at once, and their jobs go on elsewhere; neither can join again. Throws InvalidInputError for an unknown
 * name, and when the stack is down.
 */
export async function revokeFromFleet({ home }: ApiContext, what: string): Promise<Revoked> {
  const [machines, tokens] = [joinedMachines(home), fleetTokens(home)];
  const isMeant = (names: readonly string[]) => names.includes(what);
  const [ofMachines, ofTokens] = [
    machines.filter(({ instance, pool }) => isMeant([instance, pool])),
    tokens.filter(({ id, pool }) => isMeant([id, pool])),
  ];
  if (ofMachines.length + ofTokens.length === 0) throw unknown(what, [...machines, ...tokens]);
  const [stack, endpoints] = [readStack(home), readEndpoints(home)];
  if (stack === undefined || endpoints?.nats === undefined)
    throw new InvalidInputError('expected a running stack, found none', { hint: 'petrel up, then again' });
  const keys = [...ofMachines, ...ofTokens].map(({ key }) => key);
  const authority = await withRevoked(endpoints.nats.authority, keys, Date.now());
  writeEndpoints(home, { ...endpoints, nats: { ...endpoints.nats, authority } });
  const system = await connectSystem(stack.nats, 'revoke');
  try {
    if (system !== undefined) await announceAccount(system, authority);
  } finally {
    await system?.close();
  }
  return { machines: ofMachines.map(({ instance }) => instance), tokens: ofTokens.map(({ id }) => id) };
}

function unknown(what: string, all: readonly { readonly pool: string }[]): InvalidInputError {
  const names = all.flatMap((one) => [
    one.pool,
    ...('instance' in one ? [String(one.instance)] : []),
    ...('id' in one ? [String(one.id)] : []),
  ]);
  const near = nearest(what, [...new Set(names)]);
  return new InvalidInputError(`expected a machine, a token or a pool of this stack, got "${what}"`, {
    hint: near === undefined ? 'petrel fleet ls shows them' : `petrel fleet revoke ${near}; petrel fleet ls shows all`,
  });
}
