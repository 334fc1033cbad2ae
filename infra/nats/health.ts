/** Asks a NATS server for its health, over its system account, so that the server needs no monitoring port. */
import type { NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { z } from 'zod';
import { errorToJson } from '../../core/errors.ts';
import type { NatsTarget } from './connection.ts';
import { natsAuthenticator } from './nkey.ts';
import type { NatsCredential } from './nkey.ts';
import { tlsOptions } from './tls-options.ts';

/** Address of a server, with a credential of its system account. */
export type NatsSystem = NatsTarget & { readonly system: NatsCredential };

const answerMs = 2_000;
const subject = '$SYS.REQ.SERVER.PING.HEALTHZ';
const healthSchema = z.object({ data: z.object({ status: z.string(), error: z.string().optional() }) });

/** Asks one server repeatedly over one connection, which is opened at the first question. */
export class NatsHealth {
  readonly #server: NatsSystem;
  #connection: NatsConnection | undefined;
  #silence = 'it was not asked yet';

  constructor(server: NatsSystem) {
    this.#server = server;
  }

  /** Why there was no answer to the last question that had none. */
  get silence(): string {
    return this.#silence;
  }

  /** True once JetStream has read its streams from disk: only then does the server accept clients. */
  async isReady(): Promise<boolean> {
    const answer = await this.#ask();
    if (answer !== undefined) this.#silence = answer.error ?? `its status is ${answer.status}`;
    return answer?.status === 'ok'; // not ready yet: the caller asks again until its timeout
  }

  /**
   * The server's message after a failed write. From then on it refuses every message of that stream until it is
   * restarted, even when the disk has space again.
   */
  async writeError(): Promise<string | undefined> {
    const text = (await this.#ask())?.error ?? '';
    return /write error|no space left/i.test(text) ? text : undefined;
  }

  async close(): Promise<void> {
    await this.#connection?.close();
    this.#connection = undefined;
  }

  /** Undefined when the server does not answer. */
  async #ask(): Promise<{ readonly status: string; readonly error?: string | undefined } | undefined> {
    try {
      if (this.#connection === undefined || this.#connection.isClosed()) this.#connection = await this.#connect();
      const answer = await this.#connection.request(subject, '', { timeout: answerMs });
      return healthSchema.parse(answer.json()).data;
    } catch (error) {
      this.#silence = errorToJson(error).message;
      await this.close();
      return undefined;
    }
  }

  #connect(): Promise<NatsConnection> {
    const { url, system, ca } = this.#server;
    return connect({
      servers: url,
      name: 'health',
      authenticator: natsAuthenticator(system),
      ...tlsOptions({ url, ca }),
      reconnect: false,
      timeout: answerMs,
    });
  }
}

/** Sends one request. */
export async function isNatsReady(server: NatsSystem): Promise<boolean> {
  const health = new NatsHealth(server);
  return health.isReady().finally(() => health.close());
}
