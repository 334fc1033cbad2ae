/** An update, and what takes its place. FORMAT.md describes it. */
import { z } from 'zod';
import { weightsFormats } from '../../parameters.ts';
import { updateOf2 } from '../format2.ts';
import { counters, digest, metricValues, perComponent, recordFormat, writer, seal } from './fields.ts';
import { componentState } from './profile.ts';

const optimizerStep = z.object({
  lr: z.number(),
  gradNorm: z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]),
  taken: z.boolean(),
});

export type OptimizerStep = z.infer<typeof optimizerStep>;

const storedUpdate = z.object({
  format: z.literal(recordFormat),
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the batch record. */
  batch: digest,
  parentState: digest,
  outcome: z.enum(['applied', 'skipped']),
  reason: z.string().optional(),
  /** Digest of all components: FORMAT.md, "Digests of a state". */
  stateDigest: digest,
  components: perComponent(
    componentState.extend({
      steps: z.array(optimizerStep),
      /** The process that made it, where its name follows from that: numericProfile.naming. */
      incarnation: z.string().optional(),
      /** What samplers can load, by the type of its values: digests of weights manifests. */
      publications: z.partialRecord(z.enum(weightsFormats), digest),
    }),
  ),
  after: counters,
  metrics: metricValues,
  timings: metricValues,
  writer,
});

export const updateRecord = z.preprocess(updateOf2, storedUpdate);

export type UpdateRecord = z.infer<typeof updateRecord>;

/** Closes a term whose last batch is not applied. That batch is abandoned. */
export const updateSeal = z.object({ ...seal, outcome: z.literal('seal') });

export type UpdateSeal = z.infer<typeof updateSeal>;

/** The possible records at an update key. */
export const updateDecision = z.preprocess(updateOf2, z.discriminatedUnion('outcome', [storedUpdate, updateSeal]));
