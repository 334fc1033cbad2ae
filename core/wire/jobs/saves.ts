/** Jobs that write what a trainer has in memory: a checkpoint, or weights for samplers elsewhere. */
import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import { digest, publication } from '../../records/schema.ts';
import type { CheckpointManifest } from '../../records/schema.ts';
import { count, ofState, recomputable, trains } from './fields.ts';

/** Writes the state at a position as a verified checkpoint. */
export const checkpointInput = z.strictObject({
  ...recomputable,
  ...trains,
  ...ofState,
  /** A skipped update does not change the state, so two positions may have the same state and separate checkpoints. */
  iteration: count,
  state: digest,
});
export type CheckpointInput = z.infer<typeof checkpointInput>;

export interface CheckpointOutput {
  /** Key of the manifest; absent where the run is divided. */
  readonly manifest?: string;
  /** JSON blob of a run that is divided, PartOfCheckpoint. The manifest is written when there is one of each part. */
  readonly shards?: Digest;
}

/** What a manifest says of some components. */
export interface PartOfCheckpoint {
  readonly iteration: number;
  readonly components: CheckpointManifest['components'];
}

/** Writes weights for rollout workers outside the trainer's process. */
export const weightsInput = z.strictObject({
  ...recomputable,
  ...trains,
  ...ofState,
  weights: digest,
  /** Absent: the fp32 values. */
  publication: publication.optional(),
  state: digest,
});
export type WeightsInput = z.infer<typeof weightsInput>;

export interface WeightsOutput {
  readonly manifest: string;
}
