/** The stack of a worker's process: that of its machine, or one that its machine has joined. */
import { AuthorizationError, UserAuthenticationExpiredError } from '@nats-io/nats-core';
import type { NatsConnection } from '@nats-io/nats-core';
import { errorToJson, UnfitError } from '../core/errors.ts';
import { leaveNowSubject, renewSubject } from '../core/wire/join.ts';
import { inboxOf } from '../core/wire/worker-identity.ts';
import { readSession, rejoinCode, sessionVariable } from '../infra/fleet/session.ts';
import type { JoinedSession } from '../infra/fleet/session.ts';
import { buildId } from '../infra/home.ts';
import type { HasNats } from '../infra/nats/connection.ts';
import { askToJoin } from '../infra/nats/access/joining.ts';
import { publicNkey } from '../infra/nats/nkey.ts';
import { addressTowards } from './own-address.ts';
import { servesStore } from '../infra/stack/driven-runs.ts';
import { instanceName } from '../infra/stack/identity.ts';
import { asWorker, keepStack, stackFromEnv } from '../infra/stack/index.ts';
import type { WorkerPorts } from './worker.ts';

/** Set to `off`: the workers of this machine give their weights to no other. */
export const sharesVariable = 'PETREL_SHARE_WEIGHTS';

/** The address of this machine towards NATS: that is where the other workers of the stack are. */
async function servingAddress(natsUrl: string): Promise<string | undefined> {
  return process.env[sharesVariable] === 'off' ? undefined : addressTowards(natsUrl.split(',')[0] ?? natsUrl);
}

export interface Membership
  extends Pick<WorkerPorts, 'isKnownStore' | 'build' | 'stackInstance' | 'servesOn' | 'closedToScorers'> {
  readonly instance: string;
  readonly target: HasNats;
  /**
   * Keeps the stack running, or this machine a member, until the signal is aborted. `end`: the process must end with
   * this code.
   */
  readonly keep: (nc: NatsConnection, signal: AbortSignal, end: (code: number, why: string) => void) => void;
}

/**
 * How often a joined worker asks for its next JWT. It learns then that the stack runs another build; a control process
 * that starts lets it ask at once.
 */
const renewMs = 30_000;

export function membership(home: string, env: NodeJS.ProcessEnv = process.env): Membership {
  const path = env[sessionVariable];
  return path === undefined ? ofOwnStack(home) : ofSession(readSession(path));
}

function ofOwnStack(home: string): Membership {
  const instance = instanceName(home);
  const { nats } = stackFromEnv();
  return {
    instance,
    servesOn: () => servingAddress(nats.url),
    stackInstance: instance,
    target: asWorker(stackFromEnv(), instance),
    isKnownStore: (url) => servesStore(home, url),
    build: { own: buildId(), ofStack: () => stackFromEnv().build },
    // The check of the supervisor must survive the control process, so every process of the stack has it.
    keep: (_nc, signal) => void keepStack(home, signal, (line) => console.log(line)),
  };
}

function ofSession(session: JoinedSession): Membership {
  const { instance, stackInstance, store } = session;
  let { credential } = session;
  return {
    instance,
    servesOn: () => servingAddress(session.nats.url),
    stackInstance,
    closedToScorers: session.lonelySeconds !== undefined && session.ownScorers !== 'open',
    target: { nats: { ...session.nats, credential: () => credential, inbox: inboxOf({ instance }) } },
    // No fault of the run: another pool may serve its store.
    isKnownStore: (url) => {
      if (url === store) return true;
      throw new UnfitError(
        'OtherStore',
        `expected a job of the store ${store}, which the pool ${session.pool} serves, got one of ${url}`,
        {
          hint: `petrel fleet token --pool ${session.pool} --store ${url} on the control machine`,
        },
      );
    },
    keep: (nc, signal, end) => {
      const renew = async () => {
        try {
          const { jwt, build } = await askToJoin(nc, { ...session, asker: instance, key: publicNkey(credential.key) });
          credential = { key: credential.key, jwt };
          if (build !== session.build) end(rejoinCode, 'the stack runs another build');
        } catch (error) {
          console.error(`this machine's credential could not be renewed: ${errorToJson(error).message}`); // tried again
        }
      };
      nc.subscribe(renewSubject, { callback: () => void renew() });
      // once: a machine that leaves need not be told again
      nc.subscribe(leaveNowSubject(instance), { max: 1, callback: () => end(0, 'the fleet gives this machine back') });
      if (session.lonelySeconds !== undefined)
        void untilLonely(nc, session.lonelySeconds * 1_000).then(() => end(0, 'the stack cannot be reached'));
      void untilRefused(nc).then(() => end(rejoinCode, 'the stack refuses its credential'));
      const timer = setInterval(() => void renew(), renewMs);
      signal.addEventListener('abort', () => clearInterval(timer), { once: true });
    },
  };
}

/** Resolves when there has been no connection for so long. */
async function untilLonely(nc: NatsConnection, ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const watch = async () => {
      for await (const { type } of nc.status()) {
        if (type === 'reconnect') {
          clearTimeout(timer);
          timer = undefined;
        } else if (type === 'disconnect') timer ??= setTimeout(resolve, ms);
      }
    };
    void watch();
  });
}

/** A server that is being replaced may refuse a valid credential once or twice. */
const mostRefusals = 10;

/**
 * Resolves when the server has refused this machine's credential so often in a row that it was revoked or has expired.
 * Asking to join again then tells why.
 */
async function untilRefused(nc: NatsConnection): Promise<void> {
  let refusals = 0;
  for await (const status of nc.status()) {
    if (status.type === 'reconnect') refusals = 0;
    if (status.type === 'error' && isRefusal(status.error)) refusals += 1;
    if (refusals >= mostRefusals) return;
  }
  await new Promise(() => {}); // the connection was closed on purpose
}

const isRefusal = (error: Error): boolean =>
  error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;
