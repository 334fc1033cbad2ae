/**
 * The journal of samples in flight. A rollout worker writes their tokens while it decodes; the next worker of the same
 * job reads them. Like everything in NATS it may be lost at any time, and finished trajectories never depend on it.
 */
import { z } from 'zod';
import type { JobId, RunId } from '../ids.ts';
import { anyPlace, placeWords } from './worker-identity.ts';
import type { WorkerPlace } from './worker-identity.ts';

export const journalVersion = 1;

/** Hash of a sample's tokens from the first one on, by content, however they were cut into segments. */
const lineageHash = z.string().regex(/^[0-9a-f]{32}$/);

/** Some tokens of one sample, linked by a hash to those before them. */
const journalSegment = z.object({
  draw: z.int().nonnegative(),
  sample: z.int().nonnegative(),
  /** Tokens of the sample before this segment. */
  offset: z.int().nonnegative(),
  /** Hash of the tokens before the segment, and of these with the segment. */
  before: lineageHash,
  after: lineageHash,
  /** base64 of 12 bytes for each token, little-endian: i32 token, f32 log-prob, f32 log-prob as sampled. */
  tokens: z.string(),
});
export type JournalSegment = Readonly<z.infer<typeof journalSegment>>;

/**
 * Rollout worker → the journal's stream, one message per job and tick. A job's id is the digest of everything that
 * determines its samples, but for the random bits of a sampler that draws its own: model, weights, draws, sampling
 * settings, seed, numeric profile.
 */
export const journalMessage = z.object({
  v: z.literal(journalVersion),
  /** Name of the worker that made the tokens. */
  incarnation: z.string(),
  runId: z.string(),
  jobId: z.string(),
  weights: z.string(),
  /** Engine and number format of the log-probs; a reader with another format rejects them. */
  arithmetic: z.string(),
  segments: z.array(journalSegment),
});
export type JournalMessage = Readonly<z.infer<typeof journalMessage>>;

/**
 * A message stays far below NATS's limit of 1 MiB: a token takes 16 bytes of base64, and a segment's own fields take as
 * much as 12 tokens.
 */
export const maxTokensPerJournalMessage = 16_384;
export const tokensPerSegmentHead = 12;

/**
 * Rollout worker → control (request), once it has claimed the job: the entries of all workers, from this position on.
 * Nobody else may read the journal, and only entries are handed over whose writers had claimed the job.
 */
export const journalRequest = z.object({
  v: z.literal(journalVersion),
  incarnation: z.string(),
  from: z.int().positive(),
});
export type JournalRequest = Readonly<z.infer<typeof journalRequest>>;
/** Control → rollout worker. `next`: where to go on; absent: these are the last ones. */
export const journalReply = z.object({
  v: z.literal(journalVersion),
  entries: z.array(z.string()),
  next: z.int().optional(),
});
export type JournalReply = Readonly<z.infer<typeof journalReply>>;

/** Headers of an entry: the process that wrote it, and its proof (log/objects/result-proof.ts). */
export const journalHeaders = { incarnation: 'Petrel-Incarnation', proof: 'Petrel-Proof' } as const;

export const journalStream = 'JOURNAL';
export const journalStreamSubjects = 'journal.>';
export const journalSubject = (runId: RunId, jobId: JobId, from: WorkerPlace) =>
  `journal.${runId}.${jobId}.${placeWords(from)}`;
export const journalReadSubject = (runId: RunId, jobId: JobId, from: WorkerPlace) =>
  `journal-read.${runId}.${jobId}.${placeWords(from)}`;
export const journalReadsOf = (runId: RunId, jobId: JobId) => `journal-read.${runId}.${jobId}.${anyPlace}`;
/** All entries of a job, from all workers. */
export const journalOfJob = (runId: RunId, jobId: JobId) => `journal.${runId}.${jobId}.>`;
