/** Hands the journal of a rollout job to the worker that holds the job. Nobody else gets an answer. */
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { errorToJson } from '../../../core/errors.ts';
import { journalReadsOf, journalRequest, journalVersion } from '../../../core/wire/journal.ts';
import type { JournalReply } from '../../../core/wire/journal.ts';
import { senderOf } from '../../../core/wire/worker-identity.ts';
import type { WorkerPlace } from '../../../core/wire/worker-identity.ts';
import { readMessage, sayDropped } from '../incoming.ts';
import type { Job } from './job.ts';

export interface HandoverPorts {
  readonly nc: NatsConnection;
  /** Does this process hold the job? */
  readonly isHeldBy: (asker: WorkerPlace, incarnation: string) => boolean;
  readonly nameOf: (place: WorkerPlace) => string;
  /** Reads the entries from this position on. */
  readonly read: (from: number) => Promise<JournalReply>;
}

/** Answers until the returned function is called. */
export function handOverJournal(
  { request: { runId }, jobId }: Job,
  { nc, isHeldBy, nameOf, read }: HandoverPorts,
): () => void {
  const questions = nc.subscribe(journalReadsOf(runId, jobId), {
    callback: (error, message) => {
      const asked = error === null ? readMessage(message, journalRequest) : undefined;
      const asker = senderOf(message.subject);
      if (asked === undefined) return sayDropped(message.subject);
      if (isHeldBy(asker, asked.incarnation)) void answer(message, () => read(asked.from));
      else console.error(`${message.subject}: ${nameOf(asker)} does not hold the job, and gets no journal`);
    },
  });
  return () => questions.unsubscribe();
}

/** The journal only saves work: without it the worker decodes from the start. */
async function answer(message: Msg, read: () => Promise<JournalReply>): Promise<void> {
  const entries = await read().catch((error: unknown): JournalReply => {
    console.error(`${message.subject}: the journal cannot be read: ${errorToJson(error).message}`);
    return { v: journalVersion, entries: [] };
  });
  message.respond(JSON.stringify(entries));
}
