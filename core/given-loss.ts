/** The loss that stands for an iteration which learns given responses, where others show a reward. */
import { actorOf } from './records/components.ts';
import type { BatchRecord, UpdateRecord } from './records/schema.ts';

type Metrics = UpdateRecord['metrics'];

/** Older supervised runs reported only `actor/loss`. */
export const lossIn = (metrics: Metrics): Metrics[string] | undefined => metrics['train/loss'] ?? metrics['actor/loss'];

/** Does the batch hold responses that came with the rows? Such an iteration has no scores. */
export const isGiven = ({ components }: Pick<BatchRecord, 'components'>): boolean =>
  actorOf(components).loss.kind !== 'policy';
