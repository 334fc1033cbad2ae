import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import type { Components } from '../../records/components.ts';
import { blockHash, digest } from '../../records/schema.ts';
import { division } from '../../records/schemas/profile.ts';
import type { ComponentState, NumericProfile } from '../../records/schema.ts';
import { count, engineName, recomputable, some, trains } from './fields.ts';

/** The engine that a run needs: what its numeric profile is made from. */
const engine = z.strictObject({
  /** Name of the engine that trains: `trainer.engine`. */
  engine: engineName,
  compute: z.enum(['auto', 'fp32', 'bf16']),
  deterministic: z.boolean(),
  maxTokensPerMicroBatch: some,
  /** Processes over which a model is divided; absent: one. */
  ranks: some.exactOptional(),
  division: division.strict().exactOptional(),
  /** Absent: SHA-256 (core/records/block-hash.ts). */
  blockHash,
});
export type EngineSettings = z.infer<typeof engine>;

/** Loads the base model and returns its digests: state 0 of the log. */
export const openInput = z.strictObject({
  ...recomputable,
  ...trains,
  model: digest,
  engine,
  /**
   * State of another run with which a fork starts instead of the base; it is saved as the new run's first checkpoint.
   */
  from: z.strictObject({ runId: z.string(), iteration: count, state: digest }).exactOptional(),
});
export type OpenInput = z.infer<typeof openInput>;

export interface OpenOutput {
  /** Digest of all components of the job. */
  readonly stateDigest: Digest;
  readonly components: Components<ComponentState & { readonly profile: NumericProfile }>;
  /** Shards of a fork that is divided, instead of the checkpoint: CheckpointOutput. */
  readonly shards?: Digest;
}
