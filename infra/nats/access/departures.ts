/**
 * Notices workers that are gone by their closed connection, from the events of the server's system account. So the jobs
 * of a machine that vanished go on elsewhere before their ack wait ends, and nobody of that machine need be left to
 * tell. Without a system account (a server of somebody else) a worker is gone when its presence expires.
 *
 * With its own server the stack has signed each machine's JWT, and names the instance in it. On a server of others all
 * its processes have one credential, and no other client has it.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { identityText, parseIdentity } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { nameInJwt } from './authority.ts';

/** A worker whose connection was interrupted is back within this time, or gone. */
const graceMs = 1_500;

/** The client has chosen `name`. */
const connectionEvent = z.object({ client: z.object({ name: z.string(), jwt: z.string().optional() }) });

export class Departures {
  readonly #gone: (identity: WorkerIdentity) => void;
  /** Workers without a connection, by the name of their connection. */
  readonly #away = new Map<string, NodeJS.Timeout>();

  readonly #common: string | undefined;

  /**
   * `system`: a connection of the system account. `gone` is called once for each process that has left. `common`: the
   * JWT that all processes of the stack have, on a server of others.
   */
  constructor(system: NatsConnection, gone: (identity: WorkerIdentity) => void, common?: string) {
    this.#gone = gone;
    this.#common = common;
    this.#watch(system, 'CONNECT', (identity) => this.#back(identity));
    this.#watch(system, 'DISCONNECT', (identity) => this.#left(identity));
  }

  #watch(system: NatsConnection, event: 'CONNECT' | 'DISCONNECT', act: (identity: WorkerIdentity) => void): void {
    system.subscribe(`$SYS.ACCOUNT.*.${event}`, {
      callback: (error, message) => {
        const told = error === null ? connectionEvent.safeParse(message.json()).data : undefined;
        const identity = told && parseIdentity(told.client.name); // undefined: a command, or the control process
        if (identity !== undefined && this.#isOwn(identity, told?.client.jwt)) act(identity);
      },
    });
  }

  #isOwn({ instance }: WorkerIdentity, jwt: string | undefined): boolean {
    return this.#common === undefined ? nameInJwt(jwt) === instance : jwt === this.#common;
  }

  #left(identity: WorkerIdentity): void {
    const name = identityText(identity);
    if (this.#away.has(name)) return;
    const timer = setTimeout(() => {
      this.#away.delete(name);
      this.#gone(identity);
    }, graceMs);
    this.#away.set(name, timer);
  }

  #back(identity: WorkerIdentity): void {
    const name = identityText(identity);
    clearTimeout(this.#away.get(name));
    this.#away.delete(name);
  }
}
