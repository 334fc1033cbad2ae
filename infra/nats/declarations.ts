/** Both sides of declarations: workers ask, and the control process declares (core/wire/declarations.ts). */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { NoRespondersError, RequestError } from '@nats-io/nats-core';
import { errorToJson, RetryableError } from '../../core/errors.ts';
import type { MachineNeeds } from '../../core/machine-needs.ts';
import {
  declarationReply,
  declarationRequest,
  declarationsSubject,
  declarationSubject,
} from '../../core/wire/declarations.ts';
import type { DeclarationRequest } from '../../core/wire/declarations.ts';
import { wireVersion } from '../../core/wire/messages.ts';
import type { Timing } from '../../core/wire/messages.ts';
import type { WorkerPlace } from '../../core/wire/worker-identity.ts';
import { readMessage } from './incoming.ts';
import { linkOf } from './link.ts';
import { ensureConsumer, ensureStreams } from './streams.ts';

const answerMs = 5_000;
/** Pause after a request for which no control process listened. */
const againMs = 100;

type Asked = DeclarationRequest extends infer R ? (R extends unknown ? Omit<R, 'v'> : never) : never;

/**
 * Resolves when it is declared, with the needs of the jobs that there are. Waits while no control process listens,
 * because that may be starting. Throws RetryableError `NoControl` when none answers in time, and `NotDeclared` with the
 * server's reason.
 */
export async function askToDeclare(
  nc: NatsConnection,
  from: WorkerPlace,
  asked: Asked,
): Promise<readonly MachineNeeds[]> {
  const request = JSON.stringify({ v: wireVersion, ...asked });
  const until = performance.now() + answerMs;
  for (;;) {
    try {
      const answer = await linkOf(nc).orLost(nc.request(declarationSubject(from), request, { timeout: answerMs }));
      const { error, needs = [] } = readMessage(answer, declarationReply) ?? {};
      if (error !== undefined) throw new RetryableError('NotDeclared', error);
      return needs;
    } catch (cause) {
      if (!isUnanswered(cause)) throw cause;
      if (performance.now() > until) throw new RetryableError('NoControl', 'no control process answers', { cause });
    }
    await sleep(againMs);
  }
}

const isUnanswered = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/**
 * The control process declares all streams now and whenever the server is back, and answers the workers. `needs`: of
 * the jobs that there are.
 */
export async function declareStreams(
  nc: NatsConnection,
  timing: Timing,
  needs: () => readonly MachineNeeds[] = () => [],
): Promise<void> {
  await ensureStreams(nc, timing);
  linkOf(nc).onBack(() => void declareAgain(nc, timing));
  nc.subscribe(declarationsSubject, {
    callback: (error, message) => {
      if (error === null) void answer(nc, timing, message, needs());
    },
  });
}

/** Declares the streams again; when it fails, the next request of a worker and the next job declare them. */
async function declareAgain(nc: NatsConnection, timing: Timing): Promise<void> {
  try {
    await ensureStreams(nc, timing);
  } catch (error) {
    console.error(`the streams could not be declared: ${errorToJson(error).message}`);
  }
}

async function answer(nc: NatsConnection, timing: Timing, message: Msg, needs: readonly MachineNeeds[]): Promise<void> {
  const asked = readMessage(message, declarationRequest);
  const error = asked === undefined ? 'not a request of this version' : await refusal(nc, timing, asked);
  const told = { ...(error !== undefined && { error }), ...(needs.length > 0 && { needs }) };
  message.respond(JSON.stringify({ v: wireVersion, ...told }));
}

async function refusal(nc: NatsConnection, timing: Timing, asked: DeclarationRequest): Promise<string | undefined> {
  try {
    const jsm = await linkOf(nc).orLost(ensureStreams(nc, timing));
    if (asked.what === 'jobs') await linkOf(nc).orLost(ensureConsumer(jsm, asked.role, asked.profile, timing));
    return undefined;
  } catch (error) {
    return errorToJson(error).message;
  }
}
