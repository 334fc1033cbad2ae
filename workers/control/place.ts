/** The place where a control process works: its home and stack, its connections, and how it says something. */
import type { Client } from '@temporalio/client';
import type { NatsConnection } from '@nats-io/nats-core';
import { controlName } from '../../core/wire/worker-identity.ts';
import type { WorkerPlace } from '../../core/wire/worker-identity.ts';
import { connectNats, connectSystem } from '../../infra/nats/connection.ts';
import { instanceName, stackName } from '../../infra/stack/identity.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { lineWriter } from '../../infra/telemetry/run-log-lines.ts';
import type { Say } from '../../infra/telemetry/run-log-lines.ts';
import { connectTemporalClient } from '../../infra/temporal/connection.ts';

export interface ControlPlace {
  readonly home: string;
  readonly stack: StackInfo;
  /** Name of the stack, for records: who drives a run. */
  readonly stackName: string;
  /** Name of this process in records. */
  readonly name: string;
  /** Instance of this machine. */
  readonly instance: string;
  readonly nc: NatsConnection;
  /** A connection of the server's system account; undefined on a server of somebody else. */
  readonly system: NatsConnection | undefined;
  readonly client: Client;
  /** A line of this process's own log. */
  readonly log: (line: string) => void;
  /** Writes lines of a run's log. */
  readonly sayer: (runId: string) => Say;
}

export async function connectControl(stack: StackInfo, home: string): Promise<ControlPlace> {
  const name = `control-${process.pid}`;
  const instance = instanceName(home);
  const here: WorkerPlace = { instance, worker: controlName };
  const nc = await connectNats(stack, name);
  return {
    ...{ home, stack, stackName: stackName(home), name, instance, nc },
    system: await connectSystem(stack.nats, name),
    client: await connectTemporalClient(stack),
    log: (line) => console.log(line),
    sayer: (runId) => lineWriter(nc, runId, here),
  };
}
