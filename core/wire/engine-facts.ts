/**
 * What an engine says of itself. It is part of a worker's presence, so that every process can answer whether the engine
 * serves a run without loading it.
 */
import { z } from 'zod';
import { engineProof } from './engine-proof.ts';

const compute = z.enum(['fp32', 'bf16']);
/** The queue of these runs is named so. */
const queueWord = z.string().regex(/^[\w-]+$/, 'expected letters, digits, _ and -');

export const engineFacts = z.object({
  /** Name of the engine in a recipe: `trainer.engine`. */
  name: z.string().regex(/^[a-z][a-z0-9]*$/, 'expected the name of an engine, such as native'),
  /** What it computes on: an instruction set, or a model of GPU. */
  device: z.string(),
  /** Names its build or its versions; information for users. */
  build: z.string(),
  computes: z.array(compute),
  /** What `compute_dtype: auto` becomes, in runs whose bits repeat and in others. */
  auto: z.object({ deterministic: compute, otherwise: compute }),
  /**
   * Numeric profile of runs whose bits repeat, by compute type: the name of their queue. Absent: this engine does not
   * repeat its bits in it.
   */
  deterministic: z.object({ fp32: queueWord.optional(), bf16: queueWord.optional() }),
  /**
   * How its sampler draws random bits. `counter`: from `GenerateSample.random`, so a sample is the same wherever and
   * however often it is made, and one that continues from a prefix is the whole one. `seeded`: from a seed of its own,
   * so a sample that is made again, or continues from a prefix, is another one of the same distribution. It decides
   * whether a run may promise its samples (api/checks/engine-check.ts), and nothing after the start: samples count once
   * the result of their job is recorded, and all later jobs name that result.
   */
  randomness: z.enum(['counter', 'seeded']),
  /** How states are named in runs whose bits need not repeat. Absent: by their content. */
  naming: z.literal('lineage').optional(),
  /** What it proved about its bits when it was loaded; absent: nothing is known. */
  proofs: z.array(engineProof).optional(),
});
export type EngineFacts = z.infer<typeof engineFacts>;
