/** Connections to NATS that survive a restart of the server. */
import { at } from '../../core/at.ts';
import type { ConnectionOptions, NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { errorToJson, RetryableError, TerminalError } from '../../core/errors.ts';
import { retry } from '../poll.ts';
import { natsAuthenticator } from './nkey.ts';
import type { NatsCredential } from './nkey.ts';
import { tlsOptions } from './tls-options.ts';

/** The address of NATS, and how to authenticate. */
export interface NatsTarget {
  /** URL of one server, or of several of a cluster with commas between. */
  readonly url: string;
  /** The credential; without one the server must accept everybody. A function is asked for each connection. */
  readonly credential?: NatsCredential | (() => NatsCredential) | undefined;
  /** Credential of the system account, which tells of connections; only the owner of the server has it. */
  readonly system?: NatsCredential | undefined;
  /** Prefix of the subjects of answers; absent: the client's default. */
  readonly inbox?: string | undefined;
  /** Copies of each stream; absent: one. */
  readonly replicas?: number | undefined;
  /** Prefix of requests to JetStream; absent: that of the workers' account (exchange.ts). */
  readonly jobsApi?: string | undefined;
  /** Certificate (PEM) that has signed the server's; absent: the connection is not encrypted. */
  readonly ca?: string | undefined;
}

/** Any object with the address of NATS, such as `StackInfo`. */
export interface HasNats {
  readonly nats: NatsTarget;
}

const targets = new WeakMap<NatsConnection, NatsTarget>();

/** What `connectNats` was told of the servers of this connection. */
export const targetOf = (nc: NatsConnection): Partial<NatsTarget> => targets.get(nc) ?? {};

/** The first version with per-message time to live, which presence needs. */
const natsVersionFloor = '2.11.0';

export interface NatsConnectOptions {
  /** Receives one line per change of the connection: lost, reconnected, slow consumer, server shutting down. */
  readonly log?: (line: string) => void;
  /** How long the first connection may take. */
  readonly timeoutMs?: number;
}

/**
 * Connects under a name that the server shows. The client reconnects for ever; only `close()` or `drain()` ends the
 * connection. Throws `NatsUnreachable` (retryable) when no server answers within 20 s, and `NatsTooOld`.
 */
export async function connectNats(
  { nats }: HasNats,
  name: string,
  options: NatsConnectOptions = {},
): Promise<NatsConnection> {
  const connection = await firstConnection(connectOptions(nats, name), options.timeoutMs ?? 20_000);
  targets.set(connection, nats);
  const version = connection.info?.version ?? 'unknown';
  if (isOlder(version, natsVersionFloor)) {
    await connection.close();
    throw new TerminalError(
      'NatsTooOld',
      `nats-server ${natsVersionFloor} or newer is needed; ${nats.url} runs ${version}`,
      {
        hint: 'upgrade the server, or remove it from PATH: set-up then installs a newer one',
      },
    );
  }
  void logStatus(connection, name, options.log ?? (() => {}));
  return connection;
}

/** A connection of the system account; undefined for a server whose system account this stack does not know. */
export async function connectSystem(nats: NatsTarget, name: string): Promise<NatsConnection | undefined> {
  if (nats.system === undefined) return undefined;
  return await connectNats({ nats: { ...nats, credential: nats.system } }, `${name}-system`);
}

function connectOptions({ url, credential, inbox, ca }: NatsTarget, name: string): ConnectionOptions {
  return {
    servers: url.split(','),
    name,
    ...(credential === undefined ? {} : { authenticator: natsAuthenticator(credential) }),
    ...(inbox === undefined ? {} : { inboxPrefix: inbox }),
    ...tlsOptions({ url, ca }),
    // With the client's defaults the connection closes for good after ten tries of 2 s, and a silent server is noticed
    // only after minutes.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 150,
    reconnectJitter: 100,
    pingInterval: 10_000,
    maxPingOut: 2,
    // A server that is being replaced may refuse a valid key once or twice.
    ignoreAuthErrorAbort: true,
  };
}

/** The client's own `waitOnFirstConnect` waits for ever and cannot be aborted, so the wait is bounded here. */
async function firstConnection(options: ConnectionOptions, timeoutMs: number): Promise<NatsConnection> {
  try {
    return await retry(() => connect(options), { everyMs: 100, timeoutMs });
  } catch (cause) {
    throw new RetryableError(
      'NatsUnreachable',
      `no NATS server answers at ${String(options.servers)}: ${errorToJson(cause).message}`,
      {
        hint: 'petrel up',
        cause,
      },
    );
  }
}

async function logStatus(connection: NatsConnection, name: string, log: (line: string) => void): Promise<void> {
  for await (const { type, ...rest } of connection.status()) {
    if (type === 'ping') continue;
    log(`nats (${name}): ${type}${Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest, errorsAsText)}` : ''}`);
  }
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

/** Compares `2.9.10` and `2.11.0` number by number; a version that cannot be parsed counts as old. */
export function isOlder(version: string, floor: string): boolean {
  const [a, b] = [version, floor].map((text) => at(text.split('-'), 0).split('.').map(Number)) as [number[], number[]];
  for (const [i, least] of b.entries()) {
    const number = a[i] ?? Number.NaN;
    if (number !== least) return !(number > least);
  }
  return false;
}
