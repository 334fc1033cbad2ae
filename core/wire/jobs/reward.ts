import { z } from 'zod';
import type { EndpointSettings } from '../../endpoint.ts';
import type { Digest } from '../../ids.ts';
import { digest, runInputs } from '../../records/schema.ts';
import { endpointLimits } from '../endpoint-limits.ts';
import { count, recomputable, some } from './fields.ts';

const endpoint = z.strictObject({
  url: z.string().exactOptional(),
  model: z.string().exactOptional(),
  apiKey: z.string().startsWith('env:').exactOptional(),
  limits: endpointLimits,
  tokensPerRequest: count,
  retries: count,
  timeoutMs: z.number().positive(),
  question: z
    .strictObject({
      system: z.string().exactOptional(),
      template: z.string(),
      sampling: z.record(z.string(), z.unknown()).readonly(),
      score: z.union([z.strictObject({ pattern: z.string() }), z.strictObject({ field: z.string() })]),
    })
    .exactOptional(),
  range: z.tuple([z.number(), z.number()]).readonly().exactOptional(),
}) satisfies z.ZodType<EndpointSettings>;

/** How samples are scored: the part of a reward job's input that is known before the samples are. */
const scoringSettings = z.strictObject({
  model: digest,
  dataset: digest,
  scorer: runInputs.shape.scorer.unwrap(),
  settings: z.record(z.string(), z.unknown()).readonly(),
  timeoutMs: z.number().positive(),
  memoryMb: some,
  concurrency: some,
  /** The user's scorer runs in a sandbox. */
  sandbox: z.literal(true).exactOptional(),
  /** A call of the user's scorer gets all responses to a prompt, as lists. Absent: one response. */
  lists: z.literal(true).exactOptional(),
  /** Only the sample decides its score, so a timeout of the scorer does not count as a failed sample. */
  deterministic: z.boolean(),
  /** What the scorer asks, or how often it may be called. Absent: no endpoint and no limits. */
  endpoint: endpoint.exactOptional(),
  /** Numbers that every result of the scorer must have. Absent: none. */
  components: z.array(z.string()).readonly().exactOptional(),
});
export type ScoringSettings = z.infer<typeof scoringSettings>;

export const isScoringSettings = (value: unknown): value is ScoringSettings => scoringSettings.safeParse(value).success;

/** Scores every sample of a trajectories object. */
export const rewardInput = scoringSettings.extend({
  ...recomputable,
  trajectories: digest,
  /** How many times a resume has asked for the scores again, after too many samples had failed. */
  again: count.exactOptional(),
});
export type RewardInput = z.infer<typeof rewardInput>;

export interface RewardOutput {
  /** JSON blob: ScoreTable. */
  readonly scores: Digest;
  readonly failed: number;
}
