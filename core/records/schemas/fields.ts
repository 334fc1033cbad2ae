/** Fields that several records have. */
import { z } from 'zod';

export const recordFormat = 3;

/** The format of records that name a batch in shards, and of no others: FORMAT.md, "Batches in shards". */
export const shardedFormat = 4;

export const digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected a SHA-256 in lower-case hex');

/** A file is created with this name, so it must not lead out of its folder. */
export const plainFileName = z
  .string()
  .max(255)
  .regex(/^(?!\.{1,2}$)[^/\\\0]+$/, 'expected the name of a file, without folders');

/** One part of a key: run ids are used in keys. */
export const keyName = z.string().regex(/^[\w-]+$/);

/** Records that are the same in all formats keep the number that they were written with. */
export const format = z.union([z.literal(1), z.literal(2), z.literal(recordFormat)]);

/** Numbers by metric name. Not-a-number and infinities are strings in JSON. */
export const metricValues = z.record(z.string(), z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]));

export const count = z.int().nonnegative();

/** The process that wrote a record; information for users, never used for decisions. */
export const writer = z.object({ process: z.string(), at: z.string() });

export type Writer = z.infer<typeof writer>;

/** Name of a part of the state that is trained, saved and published by itself: `actor`, `critic`. See components.ts. */
export const componentName = z
  .string()
  .regex(/^[a-z][A-Za-z]{0,39}$/, 'expected the name of a component, such as actor');

export const perComponent = <T extends z.ZodType>(one: T) => z.record(componentName, one);

/** Everything besides the weights that changes from iteration to iteration. */
export const counters = z.object({
  /** Next draw number. */
  cursor: count,
  /** Optimiser steps planned so far, by component: the position in its learning-rate schedule. */
  optimizerSteps: perComponent(count),
  /** Consecutive updates without an optimiser step. */
  badSteps: count,
  /**
   * State of controllers and samplers, by name: `klCoef` is the coefficient of the KL penalty in the reward for
   * the next batch, 0 without one. A large state is a blob of the run.
   */
  controllers: z.record(z.string(), z.union([z.number(), z.string(), z.object({ blob: digest })])),
});

export type Counters = z.infer<typeof counters>;

export const drawRange = z.tuple([count, count]);

/** Takes the place of the next record, so that a late writer cannot create that record. */
export const seal = {
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the last record before it. */
  parent: digest,
  /** The process that closed the term, and its reason. */
  owner: z.string(),
  reason: z.string(),
  writer,
};
