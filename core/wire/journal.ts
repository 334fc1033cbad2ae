/**
 * The journal of samples in flight: a rollout worker writes their tokens while it decodes, whoever gets the same job after
 * it reads them. A hint like everything in NATS: it may be lost at any time, and finished trajectories never depend on it.
 */
import { z } from 'zod';
import type { JobId, RunId } from '../ids.ts';

export const journalVersion = 1;

/** Of a sample's tokens from the first one on, by content: however they were cut into segments. */
const lineageHash = z.string().regex(/^[0-9a-f]{32}$/);

/** Some tokens of one sample, linked to those before them. */
export const journalSegment = z.object({
  draw: z.int().nonnegative(),
  sample: z.int().nonnegative(),
  /** Tokens of the sample before this segment. */
  offset: z.int().nonnegative(),
  /** Hash of these, and of these with the segment. */
  before: lineageHash,
  after: lineageHash,
  /** base64 of 12 bytes for each token, little-endian: i32 token, f32 log-prob, f32 log-prob as sampled. */
  tokens: z.string(),
});
export type JournalSegment = Readonly<z.infer<typeof journalSegment>>;

/**
 * Rollout worker → the journal's stream, one for a job and tick. A job's id is the digest of all that decides its samples:
 * model, weights, draws, sampling settings, seed, numeric profile.
 */
export const journalMessage = z.object({
  v: z.literal(journalVersion),
  /** Of the worker that made the tokens. */
  incarnation: z.string(),
  runId: z.string(),
  jobId: z.string(),
  weights: z.string(),
  /** Engine and number format that made the log-probs: of others they are not believed. */
  arithmetic: z.string(),
  segments: z.array(journalSegment),
});
export type JournalMessage = Readonly<z.infer<typeof journalMessage>>;

/** A message stays below NATS's limit of 1 MiB by far: a token takes 16 bytes of base64, a segment's own fields those of 12. */
export const maxTokensPerJournalMessage = 16_384;
export const tokensPerSegmentHead = 12;

export const journalStream = 'JOURNAL';
export const journalStreamSubjects = 'journal.>';
export const journalSubject = (runId: RunId, jobId: JobId, incarnation: string) =>
  `journal.${runId}.${jobId}.${incarnation}`;
/** What all workers wrote of a job. */
export const journalOfJob = (runId: RunId, jobId: JobId) => `journal.${runId}.${jobId}.*`;
