/** The control process's side of joining (core/wire/join.ts). */
import { createHash } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { errorToJson, RetryableError, TerminalError } from '../../../core/errors.ts';
import {
  joiningOf,
  launchOfToken,
  joinRequest,
  joinsSubject,
  leaveNote,
  leavesSubject,
  parseJoiningName,
  renewSubject,
} from '../../../core/wire/join.ts';
import type { JoinReply, JoinRequest } from '../../../core/wire/join.ts';
import type { Role } from '../../../core/roles.ts';
import { wireVersion } from '../../../core/wire/messages.ts';
import { issueUser } from './authority.ts';
import { readMessage } from '../incoming.ts';
import { joinedPermissions } from './permissions.ts';

/** A machine that was refused, or that left with a reason. */
export interface LeftMachine {
  readonly pool: string;
  readonly host: string;
  readonly code: string;
  readonly message: string;
}

/** A machine that has just got a credential. */
export interface JoinedNow {
  readonly instance: string;
  readonly pool: string;
  readonly roles: Role[];
  /** Public key of the credential. */
  readonly key: string;
  readonly host: string;
  /** ISO time: when the credential expires. */
  readonly until: string;
}

export interface JoinOfficePorts {
  /** Account of the workers. */
  readonly account: { readonly seed: string };
  readonly stackInstance: string;
  readonly stackName: string;
  /** Puts the build of this stack into the store, and returns its digest. */
  readonly publishBuild: (store: string) => Promise<string>;
  readonly left: (machine: LeftMachine) => void;
  readonly joined: (machine: JoinedNow) => void;
  /** Was this key, or the token that asks, revoked? */
  readonly isRevoked: (key: string) => boolean;
  /**
   * A machine with the token of a launch asks: throws TerminalError when it is none of that launch, or another key has
   * joined in its name, and RetryableError while the launch is not answered yet.
   */
  readonly admitBought: (machine: BoughtMachine) => Promise<void>;
}

export interface BoughtMachine {
  readonly pool: string;
  readonly launch: number;
  /** What it says of itself. */
  readonly bought: { readonly id: string; readonly nonce: string } | undefined;
  readonly key: string;
  readonly instance: string;
  readonly store: string;
}

/** A machine asks again long before its JWT ends. */
const validMs = 3600 * 1000;
const authError = z.object({ client: z.object({ name: z.string() }), reason: z.string() });

/** Follows from the key, so no machine gets the instance of another one. */
const joinedInstance = (pool: string, key: string): string =>
  `${pool}-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;

/** Answers from now on. `system`: a connection of the system account, which tells of refused credentials. */
export function openJoinOffice(nc: NatsConnection, system: NatsConnection | undefined, ports: JoinOfficePorts): void {
  nc.subscribe(joinsSubject, {
    callback: (error, message) => {
      const asked = error === null ? readMessage(message, joinRequest) : undefined;
      if (asked !== undefined) void answer(message, asked, ports);
    },
  });
  nc.subscribe(leavesSubject, {
    callback: (error, message) => {
      const note = error === null ? readMessage(message, leaveNote) : undefined;
      if (note !== undefined) ports.left({ ...note, pool: joiningOf(message.subject).pool });
    },
  });
  nc.publish(renewSubject);
  system?.subscribe('$SYS.SERVER.*.CLIENT.AUTH.ERR', {
    callback: (error, message) => {
      const told = error === null ? readMessage(message, authError) : undefined;
      const asker = told && parseJoiningName(told.client.name);
      if (asker !== undefined)
        ports.left({ ...asker, code: 'TokenRefused', message: `its token was refused: ${told?.reason}` });
    },
  });
}

async function answer(message: Msg, asked: JoinRequest, ports: JoinOfficePorts): Promise<void> {
  message.respond(JSON.stringify(await replyTo(message.subject, asked, ports)));
}

async function replyTo(subject: string, asked: JoinRequest, ports: JoinOfficePorts): Promise<JoinReply> {
  const { key, store, host, bought } = asked;
  const { pool, roles, asker } = joiningOf(subject);
  const { account, stackInstance, stackName } = ports;
  const instance = joinedInstance(pool, key);
  const until = new Date(Date.now() + validMs);
  try {
    if (ports.isRevoked(key))
      throw new TerminalError('Revoked', `this machine, ${instance}, was taken out of the pool ${pool}`, {
        hint: 'petrel fleet revoke on the control machine did it. A new PETREL_HOME makes a new machine of it, with a new token',
      });
    const launch = launchOfToken(asker);
    if (launch !== undefined) await ports.admitBought({ pool, launch, bought, key, instance, store });
    const build = await ports.publishBuild(store);
    const jwt = await issueUser(account, {
      name: instance,
      key,
      permissions: joinedPermissions({ instance, pool, roles }),
      expiresAt: until,
    });
    ports.joined({ instance, pool, roles, key, host, until: until.toISOString() });
    return { v: wireVersion, answer: 'welcome', instance, jwt, build, stackInstance, stackName, now: Date.now() };
  } catch (error) {
    const { code, message, hint = 'petrel status on the control machine' } = errorToJson(error);
    if (!(error instanceof RetryableError)) ports.left({ pool, host, code, message });
    return { v: wireVersion, answer: 'refused', code, message, hint };
  }
}
