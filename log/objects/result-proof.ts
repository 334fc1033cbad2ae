/**
 * The proof that the result of a job was written by a process that had claimed the job. A job's id follows from its
 * input, so everybody who may write into the store could write a result for it. The control process answers a claim
 * with a secret,
 *
 *   secret = HMAC(key of the store, run, job, incarnation of the worker's process)
 *   proof = HMAC(secret, the result record without its claim)
 *
 * and accepts no result without its proof: it is lost, as if it were damaged, and the job runs again as its next
 * generation. Entries of the journal and messages of a failure have proofs with the same secret. HMAC is that of RFC
 * 2104 with SHA-256.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../core/canonical.ts';
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import type { ResultRecord } from '../../core/records/schema.ts';
import type { JobEvent } from '../../core/wire/messages.ts';

/** `key`: hexadecimal, of the store. The secret is hexadecimal too. */
export function claimSecret(key: string, runId: string, jobId: string, incarnation: string): string {
  return hmac(key, canonicalJson([runId, jobId, incarnation]));
}

/** What the workers of a run need to get its weights from each other (core/wire/weights.ts). Hexadecimal. */
export const weightsSecret = (key: string, runId: string): string => hmac(key, canonicalJson(['weights', runId]));

/** The record with its claim. */
export function proven(record: ResultRecord, incarnation: string, secret: string): ResultRecord {
  return { ...record, claim: { incarnation, proof: proofOf(record, secret) } };
}

/** The proof of a message about the job: an entry of the journal, or that the job has failed. */
export const messageProof = (secret: string, text: string): string => hmac(secret, `message ${text}`);

export const isMessageProof = (secret: string, text: string, proof: string): boolean =>
  isEqual(proof, messageProof(secret, text));

type Failed = Extract<JobEvent, { type: 'failed' }>;

export function provenFailure(failed: Omit<Failed, 'proof'>, secret: string): Failed {
  return { ...failed, proof: messageProof(secret, canonicalJson(failed)) };
}

export const isFailureProven = ({ proof, ...failed }: Failed, secret: string): boolean =>
  isMessageProof(secret, canonicalJson(failed), proof);

/** Throws PauseError `DamagedRecord` for a result whose writer had not claimed the job, or that was changed since. */
export function requireProof(key: string, runId: string, jobId: string, record: ResultRecord): void {
  const { claim } = record;
  if (claim !== undefined && record.jobId === jobId) {
    const expected = proofOf(record, claimSecret(key, runId, jobId, claim.incarnation));
    if (isEqual(claim.proof, expected)) return;
  }
  throw damage(
    'DamagedRecord',
    keys.result(runId, jobId),
    `written by ${record.writer.process}, which cannot prove that it claimed the job`,
  );
}

function proofOf(record: ResultRecord, secret: string): string {
  const { claim: _, ...rest } = record;
  return hmac(secret, canonicalJson(rest));
}

const hmac = (key: string, text: string) => createHmac('sha256', Buffer.from(key, 'hex')).update(text).digest('hex');

function isEqual(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
