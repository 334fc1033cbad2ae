/** Lines that a worker writes into the logs of its runs, and into its own. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';

export type SayOfRun = (runId: string, level: 'info' | 'warn' | 'error', text: string) => void;

/** Writes into the log of the run, and into the worker's own. */
export function sayOfRun(nc: NatsConnection, identity: WorkerIdentity): SayOfRun {
  return (runId, level, text) => {
    lineWriter(nc, runId, identity)(level, text);
    console.error(`${runId} ${text}`);
  };
}
