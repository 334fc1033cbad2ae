import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import type { Components } from '../../records/components.ts';
import { counters, digest, numericProfile, runInputs } from '../../records/schema.ts';
import type { BatchLayout, Counters, DrawRecord, LossSettings, OptimizerSettings } from '../../records/schema.ts';
import { RUN_KINDS } from '../../run-kinds.ts';
import { algorithmSettings } from './algorithm.ts';
import { count, draws, recomputable, some, trains } from './fields.ts';

const scores = { trajectories: digest, scores: digest };

/** Scored trajectories of some draws. */
const scoredSamples = z.strictObject({
  ...scores,
  /** Wave in which the draws were sampled; absent: 0. */
  wave: some.exactOptional(),
  /** Greedy responses to the same draws, one each. */
  baseline: z.strictObject(scores).exactOptional(),
});
export type ScoredSamples = z.infer<typeof scoredSamples>;

const batch = {
  ...recomputable,
  ...trains,
  kind: z.enum(RUN_KINDS),
  iteration: some,
  parentState: digest,
  weights: digest,
  inputs: runInputs,
  profile: numericProfile,
  draws,
  /** Scored samples in draw order. Empty where responses come with the rows. */
  parts: z.array(scoredSamples).readonly(),
  before: counters,
  cursorAfter: count,
  algorithm: algorithmSettings,
};

/** Turns scored trajectories (RL) or dataset rows (SFT) into a closed batch. */
export const advantageInput = z.strictObject({
  ...batch,
  /** State of the job's components, when the run is divided. `parentState` is always the run's. */
  partState: digest.exactOptional(),
  /** The critic's values, where another job makes them: ValuesOutput. */
  values: digest.exactOptional(),
});
export type AdvantageInput = z.infer<typeof advantageInput>;

/** How a component is trained on a batch. */
export interface BatchComponent {
  /** Learning rate of each optimiser step. */
  readonly learningRates: readonly number[];
  readonly loss: LossSettings;
  readonly optimizer: OptimizerSettings;
}

export interface AdvantageOutput {
  /** safetensors of the batch, or of its index. */
  readonly tensors: Digest;
  /** The shards of a batch that is too large for one object. */
  readonly shards?: Digest[];
  readonly oldLogProbs: 'stored' | 'on-policy';
  /** Absent: flat. */
  readonly layout?: BatchLayout;
  readonly components: Components<BatchComponent>;
  readonly draws: readonly DrawRecord[];
  readonly after: Counters;
  readonly metrics: Readonly<Record<string, number | 'NaN' | 'Infinity' | '-Infinity'>>;
  /** The values that it was given: their blob is removed with those of the batch. */
  readonly values?: Digest;
}

/**
 * The critic's values of the batch that the advantage job will make, where the critic is trained by jobs of its own.
 */
export const valuesInput = z.strictObject({ ...batch, partState: digest });
export type ValuesInput = z.infer<typeof valuesInput>;

export interface ValuesOutput {
  /** safetensors of a value for each token: FORMAT.md, "Values". */
  readonly values: Digest;
}
