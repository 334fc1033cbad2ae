/** The control process's side of the rollout journal: it hands the entries of a job over, and removes them. */
import type { DirectStreamAPI, JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import { journalHeaders, journalOfJob, journalStream, journalVersion } from '../../../core/wire/journal.ts';
import type { JournalReply } from '../../../core/wire/journal.ts';
import { senderOf } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { isMessageProof } from '../../../log/objects/result-proof.ts';

/** Bytes of one reply, unless its first entry is longer; NATS takes 8 MB. */
const replyBytes = 1024 * 1024;

interface JobOfJournal {
  readonly runId: string;
  readonly jobId: string;
  /** The secret of this process's claim of the job. */
  readonly secretOf: (claimant: WorkerIdentity) => string;
}

/**
 * Entries of a job from this position of the stream on, oldest first. An entry whose writer cannot prove that it had
 * claimed the job is left out: a worker could make others go on with tokens that no worker of the job has sampled.
 */
export async function readEntries(
  direct: DirectStreamAPI,
  { runId, jobId, secretOf }: JobOfJournal,
  from: number,
): Promise<JournalReply> {
  const entries: string[] = [];
  const next_by_subj = journalOfJob(runId, jobId);
  let bytes = 0;
  for (let seq = from; ; ) {
    const message = await direct.getMessage(journalStream, { seq, next_by_subj });
    if (message === null) return { v: journalVersion, entries };
    const text = message.string();
    bytes += Buffer.byteLength(text);
    if (entries.length > 0 && bytes > replyBytes) return { v: journalVersion, entries, next: message.seq };
    if (isProven(message, text, secretOf)) entries.push(text);
    else console.error(`${message.subject}: left out an entry whose writer cannot prove that it had claimed the job`);
    seq = message.seq + 1;
  }
}

function isProven({ subject, header }: StoredMsg, text: string, secretOf: JobOfJournal['secretOf']): boolean {
  const [incarnation, proof] = [header.get(journalHeaders.incarnation), header.get(journalHeaders.proof)];
  return isMessageProof(secretOf({ ...senderOf(subject), incarnation }), text, proof);
}

/** Removes the entries of a finished job. When that fails they expire. */
export async function purgeJournal(jsm: JetStreamManager, runId: string, jobId: string): Promise<void> {
  await jsm.streams.purge(journalStream, { filter: journalOfJob(runId, jobId) }).catch(() => undefined);
}
