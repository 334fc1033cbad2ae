/**
 * Do the servers of stack.yaml serve? Asked before a stack starts, because its processes would wait for them for ever.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import { errorToJson, InvalidInputError, RetryableError } from '../../core/errors.ts';
import { connectNats } from '../nats/connection.ts';
import type { OwnedByOthers } from './servers.ts';

const usualTimeoutMs = 10_000;

/** Throws RetryableError for a server that does not answer, InvalidInputError for one that cannot serve a stack. */
export async function requireServing({ temporal, nats }: OwnedByOthers, timeoutMs = usualTimeoutMs): Promise<void> {
  await Promise.all([nats && requireNats(nats, timeoutMs), temporal && requireTemporal(temporal, timeoutMs)]);
}

async function requireNats(nats: NonNullable<OwnedByOthers['nats']>, timeoutMs: number): Promise<void> {
  const nc = await connectNats({ nats }, 'petrel-up', { timeoutMs }).catch((error: unknown) => {
    throw new RetryableError('NatsUnreachable', errorToJson(error).message, {
      where: 'stack.yaml: nats',
      hint: 'start the servers that it names, or correct urls, credentials and ca',
    });
  });
  try {
    await (await jetstreamManager(nc)).getAccountInfo();
  } catch (cause) {
    throw new InvalidInputError(`expected a NATS account with JetStream: ${errorToJson(cause).message}`, {
      where: 'stack.yaml: nats.credentials',
      hint: 'enable JetStream on the servers, and for the account of the credentials',
      cause,
    });
  } finally {
    await nc.close();
  }
}

async function requireTemporal(temporal: NonNullable<OwnedByOthers['temporal']>, timeoutMs: number): Promise<void> {
  const { address, namespace } = temporal;
  // Only now, because the builds that machines fetch do not have Temporal's client.
  const { connectTemporalClient } = await import('../temporal/connection.ts');
  const client = await connectTemporalClient({ temporal }, timeoutMs).catch((error: unknown) => {
    throw new RetryableError('TemporalUnreachable', errorToJson(error).message, {
      where: 'stack.yaml: temporal',
      hint: 'start the server that it names, or correct address, tls and api_key',
    });
  });
  try {
    await client.workflowService.describeNamespace({ namespace });
  } catch (cause) {
    throw new InvalidInputError(`expected the namespace ${namespace} at ${address}: ${errorToJson(cause).message}`, {
      where: 'stack.yaml: temporal.namespace',
      hint: `temporal operator namespace create --namespace ${namespace} --address ${address}`,
      cause,
    });
  } finally {
    await client.connection.close();
  }
}
