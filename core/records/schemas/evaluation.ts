/** A validation. FORMAT.md describes it. */
import { z } from 'zod';
import { count, digest, format, metricValues, writer } from './fields.ts';

export const evalRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  /** Policy version: 0 is the base. */
  iteration: count,
  weightsDigest: digest,
  /** Responses that were judged: `rollout.val_kwargs.n` to each question. */
  questions: z.int().positive(),
  /** Responses that could not be scored. */
  failed: count,
  /** Mean of `acc` (or of the score) over these responses; failed ones count as 0. */
  accuracy: z.number(),
  metrics: metricValues,
  timings: metricValues,
  results: z.array(z.string()),
  writer,
});

export type EvalRecord = z.infer<typeof evalRecord>;
