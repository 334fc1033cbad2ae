/** Checkpoints, and published weights. FORMAT.md describes it. */
import { z } from 'zod';
import { weightsFormats } from '../../parameters.ts';
import { checkpointOf2, componentOf2, publicationOf2 } from '../format2.ts';
import { componentName, count, digest, perComponent, recordFormat } from './fields.ts';
import { blockHash, componentState } from './profile.ts';

const shardInfo = z.object({
  blob: digest,
  bytes: count,
  /** Tensor names in the shard, each with the range [start, end) of the elements that the shard contains. */
  tensors: z.array(z.object({ name: z.string(), start: count, end: count })),
});

export type ShardInfo = z.infer<typeof shardInfo>;

/** A named array of a state. */
const statePart = z.object({
  name: z.string(),
  dtype: z.enum(weightsFormats),
  elements: count,
  /** Digest of its values: FORMAT.md, "Digests of a state". Absent in manifests before format 3. */
  digest: digest.optional(),
});

/** A component's part of a checkpoint. */
export const componentCheckpoint = z.preprocess(
  componentOf2,
  componentState.extend({
    /** The updates that made it name it. Absent: its content does. */
    naming: z.literal('lineage').optional(),
    blockHash,
    /** Optimiser steps that were taken. */
    steps: count,
    /** The parts of its state: weights and moments, or what else its engine has. */
    parts: z.array(statePart),
    /** Shards of each part. */
    shards: z.array(shardInfo),
    parameters: z.array(z.object({ name: z.string(), shape: z.array(count) })),
  }),
);

export type ComponentCheckpoint = z.infer<typeof componentCheckpoint>;

export const checkpointManifest = z.preprocess(
  checkpointOf2,
  z.object({
    format: z.literal(recordFormat),
    runId: z.string(),
    term: z.int().positive(),
    iteration: count,
    /** Digest of all components. */
    stateDigest: digest,
    components: perComponent(componentCheckpoint),
  }),
);

export type CheckpointManifest = z.infer<typeof checkpointManifest>;

/** What samplers load: publications.ts. */
export const publication = z.object({ format: z.enum(weightsFormats), digest });

/** A publication of a component's weights: publications.ts. */
export const weightsManifest = z.preprocess(
  publicationOf2,
  z.object({
    format: z.literal(recordFormat),
    component: componentName,
    /** Digest of the publication: with F32 the digest of the weights. */
    weightsDigest: digest,
    blockHash,
    /** Type of the values of each tensor in the shards. */
    dtypes: z.record(z.string(), z.enum(weightsFormats)),
    shards: z.array(shardInfo),
  }),
);

export type WeightsManifest = z.infer<typeof weightsManifest>;
