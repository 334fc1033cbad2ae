import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import { digest, numericProfile } from '../../records/schema.ts';
import { samplingApis } from '../../sampling-server.ts';
import type { SamplingServer } from '../../sampling-server.ts';
import type { SamplingSettings } from '../../sampling-settings.ts';
import { count, draws, engineName, recomputable, seed, some } from './fields.ts';

/** `baseline`: the greedy response to each prompt of a training job, with which `remax` compares. */
const purposes = ['train', 'baseline', 'validate'] as const;
export type RolloutPurpose = (typeof purposes)[number];

const sampling = z.strictObject({
  temperature: z.number().nonnegative(),
  topK: z.int(),
  topP: z.number(),
  minP: z.number(),
  repetitionPenalty: z.number(),
}) satisfies z.ZodType<SamplingSettings>;

const server = z.strictObject({
  api: z.enum(samplingApis),
  url: z.string(),
  apiKey: z.string().exactOptional(),
  weightsFolder: z.string().exactOptional(),
  timeoutMs: z.number().positive(),
}) satisfies z.ZodType<SamplingServer>;

/** Samples responses for some draws from exactly these weights. */
export const rolloutInput = z.strictObject({
  ...recomputable,
  purpose: z.enum(purposes),
  /** Name of the engine that samples: `rollout.name`, or the one that asks servers. */
  sampler: engineName,
  /** The server that samples. Absent: the worker does. */
  server: server.exactOptional(),
  /** Devices over which the sampler divides its model. Absent: one. */
  tensorParallel: some.exactOptional(),
  model: digest,
  dataset: digest,
  weights: digest,
  profile: numericProfile,
  draws,
  samplesPerDraw: some,
  /** Number of each draw's first sample; not 0 in a part of a larger job. */
  firstSample: count.exactOptional(),
  sampling,
  maxNewTokens: some,
  maxSequences: some,
  stopStrings: z.array(z.string()).readonly(),
  seed,
});
export type RolloutInput = z.infer<typeof rolloutInput>;

export interface RolloutOutput {
  /** safetensors of the trajectories: FORMAT.md, "Trajectory tensors". */
  readonly trajectories: Digest;
  readonly samples: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
  /** Kind, version and model of the server that has sampled. Absent: the worker has. */
  readonly sampledBy?: string;
}
