/**
 * Joining, on the side of the machine (core/wire/join.ts): it asks with the credential of its file, and later with its
 * own.
 */
import { hostname } from 'node:os';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { errorToJson, RetryableError, TerminalError } from '../../../core/errors.ts';
import { joiningName, joinReply, joinSubject, leaveSubject } from '../../../core/wire/join.ts';
import type { JoinFile, JoinReply, LeaveNote } from '../../../core/wire/join.ts';
import { wireVersion } from '../../../core/wire/messages.ts';
import { inboxOf } from '../../../core/wire/worker-identity.ts';
import { connectNats } from '../connection.ts';
import { readMessage } from '../incoming.ts';

export type Welcome = Extract<JoinReply, { answer: 'welcome' }>;

/** A clock that is further off than this makes JWTs and the times of records wrong. */
const clockMs = 60_000;
const answerMs = 10_000;
/**
 * The first machine of a build waits until the control process has put it into the store, and a control process may be
 * restarting.
 */
const mostAnswers = 6;
const connectMs = 5_000;

/** One word: it is part of a subject's name and of log lines. */
const ownHost = (): string =>
  hostname()
    .replaceAll(/[^\w.-]/g, '-')
    .slice(0, 100) || 'unknown';

/**
 * A connection with the credential of the file. Throws TerminalError `TokenRefused`, and `NatsUnreachable` (retryable).
 */
export async function connectToJoin(file: JoinFile): Promise<NatsConnection> {
  const nats = { ...file.nats, credential: file.credential, inbox: inboxOf({ instance: file.id }) };
  try {
    return await connectNats({ nats }, joiningName(file.pool, ownHost()), { timeoutMs: connectMs });
  } catch (error) {
    if (!/authoriz|authentic/i.test(errorToJson(error).message)) throw error;
    throw new TerminalError(
      'TokenRefused',
      `the stack ${file.stack} at ${file.nats.url} does not accept this token of the pool ${file.pool}: expected one that it has made and that has not expired`,
      { hint: newTokenHint(file.pool), cause: error },
    );
  }
}

const newTokenHint = (pool: string): string =>
  `petrel fleet token --pool ${pool} on the control machine makes a new one`;

interface Asker extends Pick<JoinFile, 'pool' | 'roles' | 'store'> {
  readonly asker: string;
  /** Public key of the machine. */
  readonly key: string;
  readonly bought?: { readonly id: string; readonly nonce: string };
}

/** Throws RetryableError `NoControl`, and TerminalError with the reason of the control process. */
export async function askToJoin(
  nc: NatsConnection,
  { asker, pool, roles, key, store, bought }: Asker,
): Promise<Welcome> {
  const request = JSON.stringify({ v: wireVersion, key, host: ownHost(), store, ...(bought && { bought }) });
  const subject = joinSubject({ pool, roles, asker });
  const answer = await firstAnswer(() => nc.request(subject, request, { timeout: answerMs }));
  const reply = readMessage(answer, joinReply);
  if (reply === undefined)
    throw new TerminalError('OtherVersion', 'expected an answer of this version of petrel, got another', {
      hint: 'install the version of petrel that the control machine runs',
    });
  if (reply.answer === 'refused') throw new TerminalError(reply.code, reply.message, { hint: reply.hint });
  checkClock(reply.now);
  return reply;
}

async function firstAnswer(ask: () => Promise<Msg>): Promise<Msg> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (cause) {
      if (attempt < mostAnswers && errorToJson(cause).message === 'timeout') continue;
      throw new RetryableError('NoControl', `no control process of the stack answers: ${errorToJson(cause).message}`, {
        hint: 'petrel up on the control machine',
        cause,
      });
    }
  }
}

function checkClock(theirs: number): void {
  const offMs = Date.now() - theirs;
  if (Math.abs(offMs) <= clockMs) return;
  const off = `${Math.abs(Math.round(offMs / 1000))} s ${offMs > 0 ? 'ahead of' : 'behind'}`;
  throw new TerminalError(
    'WrongClock',
    `expected a clock within a minute of the control machine's, got one ${off} it`,
    {
      hint: 'set the clock, for example with timedatectl set-ntp true',
    },
  );
}

/** Tells the stack why this machine leaves; resolves when the message is sent. */
export async function tellLeaving(
  nc: NatsConnection,
  from: Parameters<typeof leaveSubject>[0],
  error: unknown,
): Promise<void> {
  const { code, message } = errorToJson(error);
  const note: LeaveNote = { v: wireVersion, host: ownHost(), code, message: message.slice(0, 2_000) };
  nc.publish(leaveSubject(from), JSON.stringify(note));
  await nc.flush();
}
