/** Components that learn before the others, and then say anew what those learn from. */
import type { Call, PolicyEngine } from '../../../core/ports/policy.ts';
import type { BatchLayout, LossSettings } from '../../../core/records/schema.ts';
import type { ReadableBatch } from '../samples/stored-batch.ts';
import { learnsFirst, withPrimeAdvantages } from './prime.ts';

/** Gives the batch for the other components, and metrics that it could not have before. */
export type Rewriting = (
  engine: PolicyEngine,
  settings: { readonly loss: LossSettings },
  layout: BatchLayout | undefined,
  batch: ReadableBatch,
  call: Call,
) => Promise<{ readonly batch: ReadableBatch; readonly metrics: Readonly<Record<string, number>> }>;

/** What a component does to the batch once it has learned; undefined for one that learns beside the others. */
export const rewritingOf = (loss: LossSettings): Rewriting | undefined =>
  learnsFirst(loss) ? withPrimeAdvantages : undefined;
