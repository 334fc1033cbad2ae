/**
 * Samples that are scored ahead. While a rollout job generates, its worker tells a reward worker of the samples that
 * have ended, and the reward worker keeps their outcomes until the reward job comes. Like everything in NATS these
 * messages may be lost: what was not scored ahead is scored by the reward job, which alone commits results.
 */
import { z } from 'zod';
import { wireVersion } from './messages.ts';

const version = z.literal(wireVersion);
const count = z.int().nonnegative();

/** Rollout worker → one reward worker. */
export const endedSamples = z.object({
  v: version,
  runId: z.string(),
  store: z.string(),
  /** The rollout job. */
  jobId: z.string(),
  /** `sample`: number among the responses to the draw. `tokens`: base64 of the response's, i32 little-endian. */
  samples: z.array(z.object({ draw: count, row: count, sample: count, tokens: z.string() })),
  /** jobs.ts, ScoringSettings. */
  scoring: z.record(z.string(), z.unknown()),
});
export type EndedSamples = Readonly<z.infer<typeof endedSamples>>;

/** `scorer`: `identityText` of the reward worker. */
export const endedSamplesSubject = (scorer: string) => `ended.${scorer}`;

/** Most tokens of one message: 1 MiB of base64. A longer response is not scored ahead. */
export const mostTokensTold = 196_608;

/** Control → one reward worker: another one scores the samples of this rollout job. */
export const samplesTaken = z.object({ v: version, runId: z.string(), jobId: z.string() });
/** `scorer`: `identityText` of the reward worker. */
export const samplesTakenSubject = (scorer: string) => `taken.${scorer}`;
