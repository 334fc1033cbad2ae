import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import { digest } from '../../records/schema.ts';
import { count, ofState, recomputable, some, trains } from './fields.ts';

/** Compares the two responses of each row with the model at a position: kinds dpo and rm. */
export const compareInput = z.strictObject({
  ...recomputable,
  ...trains,
  ...ofState,
  kind: z.enum(['dpo', 'rm']),
  position: count,
  state: digest,
  /** The policy that the trained one is held against; dpo only. */
  reference: digest,
  dataset: digest,
  rows: some,
  beta: z.number(),
  maxTokensPerMicroBatch: some,
});
export type CompareInput = z.infer<typeof compareInput>;

export interface CompareOutput {
  /** JSON blob: ScoreTable with one entry for each pair: 1 where the chosen response is preferred. */
  readonly scores: Digest;
  readonly pairs: number;
}
