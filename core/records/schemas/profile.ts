/** The profile of an engine, and the digests of a state. FORMAT.md describes it. */
import { z } from 'zod';
import { profileOf2 } from '../format2.ts';
import { digest } from './fields.ts';

/** Hash of the 8 MiB blocks in the digests of a state: block-hash.ts. */
export const blockHash = z.literal('blake3').optional();

/** How the processes share a model beside FSDP2, and hold it: core/division.ts. */
export const division = z.object({
  sequence: z.int().positive().exactOptional(),
  tensor: z.int().positive().exactOptional(),
  experts: z.int().positive().exactOptional(),
  offload: z.boolean().exactOptional(),
  state: z.literal('bf16').exactOptional(),
});

/** What a machine must have to reproduce the same bits. */
export const numericProfile = z.preprocess(
  profileOf2,
  z.object({
    /**
     * `det-…`: equal ids give equal bits for equal inputs (profile-ids.ts). `any`: results are comparable but not
     * equal. Builds without an arithmetic version wrote other ids: former-profiles.ts.
     */
    id: z.string(),
    /** Name of the engine that computes: `trainer.engine` of the recipe. */
    engine: z.string(),
    /** What it computes on: an instruction set, or a model of GPU. */
    device: z.string(),
    /** The engine's build or versions; information for users, never used for decisions. */
    build: z.string(),
    compute: z.enum(['fp32', 'bf16']),
    deterministic: z.boolean(),
    /** Tokens of the largest micro-batch, on which the order of sums over tokens depends. */
    maxTokensPerMicroBatch: z.int().positive(),
    /** Processes over which a model is divided, on which the order of sums depends. Absent: one. */
    ranks: z.int().positive().exactOptional(),
    /** How they share it beside that, on which the order of sums depends, too. Absent: not. */
    division: division.exactOptional(),
    /** How its states are named: by the updates that made them. Absent: by their content. */
    naming: z.literal('lineage').optional(),
    blockHash,
  }),
);

export type NumericProfile = z.infer<typeof numericProfile>;

/** Digests of a component: its weights, and its whole state with the optimiser's. */
export const componentState = z.object({ stateDigest: digest, weightsDigest: digest });

export type ComponentState = z.infer<typeof componentState>;
