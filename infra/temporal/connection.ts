/** Connections to Temporal: one kind for callers (client), one for pollers (worker). */
import { Client, Connection } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';
import { errorToJson, RetryableError } from '../../core/errors.ts';
import { isOwn } from '../outbound/proxy-of.ts';
import { retry } from '../poll.ts';
import { payloadCodec } from './payload-codec.ts';

/** Address of Temporal: the local stack, a cluster, or Temporal Cloud. */
export interface TemporalTarget {
  readonly address: string;
  readonly namespace?: string | undefined;
  readonly tls?: boolean | undefined;
  readonly apiKey?: string | undefined;
  /** Key of `payloadCodec`, in base64; without it payloads are plain JSON. */
  readonly payloadKey?: string | undefined;
}

/** Any object with Temporal's address, such as `StackInfo`. */
export interface HasTemporal {
  readonly temporal: TemporalTarget;
}

/** How long a server may take to appear, for instance while the supervisor restarts it. */
const connectTimeoutMs = 20_000;
const retryEveryMs = 100;

/**
 * A client for starting, signalling and describing runs. Throws `TemporalUnreachable` (retryable) after 20 s. Close it
 * with `client.connection.close()`.
 */
export async function connectTemporalClient({ temporal }: HasTemporal, timeoutMs = connectTimeoutMs): Promise<Client> {
  const connection = await patiently(temporal, timeoutMs, () =>
    Connection.connect({ ...connectOptions(temporal), ...directly(temporal.address) }),
  );
  return new Client({
    connection,
    namespace: temporal.namespace ?? 'default',
    dataConverter: dataConverterOf(temporal),
  });
}

/** How arguments and results become payloads; the same for clients and for `Worker.create`. */
export function dataConverterOf({ payloadKey }: TemporalTarget): DataConverter {
  return payloadKey === undefined ? {} : { payloadCodecs: [payloadCodec(payloadKey)] };
}

/**
 * A connection for `Worker.create`. Throws `TemporalUnreachable` (retryable) after 20 s. Later it reconnects by itself.
 */
export async function connectTemporalWorker(
  { temporal }: HasTemporal,
  timeoutMs = connectTimeoutMs,
): Promise<NativeConnection> {
  // takes half a second to load, which clients need not pay
  const { NativeConnection } = await import('@temporalio/worker');
  return patiently(temporal, timeoutMs, () => NativeConnection.connect(connectOptions(temporal)));
}

function connectOptions({ address, tls, apiKey }: TemporalTarget) {
  return {
    address,
    ...(tls === undefined ? {} : { tls }),
    ...(apiKey === undefined ? {} : { apiKey, tls: tls ?? true }),
  };
}

/**
 * gRPC sends every connection to the proxy of `grpc_proxy`, `https_proxy` or `http_proxy`, those to this machine too.
 * (The library of workers reads no such variable.)
 */
function directly(address: string): { channelArgs?: { 'grpc.enable_http_proxy': 0 } } {
  const { hostname } = new URL(`http://${address}`);
  return isOwn(hostname.replace(/^\[(.*)\]$/, '$1')) ? { channelArgs: { 'grpc.enable_http_proxy': 0 } } : {};
}

async function patiently<T extends object>(
  { address }: TemporalTarget,
  timeoutMs: number,
  connect: () => Promise<T>,
): Promise<T> {
  try {
    return await retry(connect, { everyMs: retryEveryMs, timeoutMs });
  } catch (cause) {
    throw new RetryableError(
      'TemporalUnreachable',
      `no Temporal server answers at ${address}: ${errorToJson(cause).message}`,
      {
        hint: 'petrel up',
        cause,
      },
    );
  }
}
