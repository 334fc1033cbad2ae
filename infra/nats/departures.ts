/**
 * Notices workers that are gone by their closed connection, from the events of the server's system account. So the jobs of
 * a machine that vanished go on elsewhere before their ack wait ends, and nobody of that machine need be left to tell.
 * Without a system account (a server of somebody else) a worker is gone when its presence expires.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { parseIdentity } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';

/** A worker whose connection was interrupted is back within this time, or gone. */
const graceMs = 1_500;

const connectionEvent = z.object({ client: z.object({ name: z.string() }) });

export class Departures {
  readonly #gone: (identity: WorkerIdentity) => void;
  /** Workers without a connection, by the name of their connection. */
  readonly #away = new Map<string, NodeJS.Timeout>();

  /** `system`: a connection of the system account. `gone` is called once for each process that has left. */
  constructor(system: NatsConnection, gone: (identity: WorkerIdentity) => void) {
    this.#gone = gone;
    this.#watch(system, 'CONNECT', (name) => this.#back(name));
    this.#watch(system, 'DISCONNECT', (name) => this.#left(name));
  }

  #watch(system: NatsConnection, event: 'CONNECT' | 'DISCONNECT', act: (name: string) => void): void {
    system.subscribe(`$SYS.ACCOUNT.*.${event}`, {
      callback: (error, message) => {
        const told = error === null ? connectionEvent.safeParse(message.json()).data : undefined;
        if (told !== undefined) act(told.client.name);
      },
    });
  }

  #left(name: string): void {
    const identity = parseIdentity(name);
    if (identity === undefined || this.#away.has(name)) return; // no worker: a command, or the control process
    const timer = setTimeout(() => {
      this.#away.delete(name);
      this.#gone(identity);
    }, graceMs);
    this.#away.set(name, timer);
  }

  #back(name: string): void {
    clearTimeout(this.#away.get(name));
    this.#away.delete(name);
  }
}
