/** The record of a batch that a term applies again, on another state. */
import { componentOf, mapComponents } from '../../core/records/components.ts';
import type { BatchRecord, Writer } from '../../core/records/schema.ts';
import type { Stored } from '../../log/objects/records.ts';
import type { Head } from '../../log/run/run-log.ts';

/**
 * A copy of an earlier batch record for the head: the same draws, samples, tensors and learning rates on another state.
 * Only the count of bad steps comes from the head, because an update that took no step before may take one now.
 */
export function adoptedBatch({ record, digest }: Stored<BatchRecord>, head: Head, writer: Writer): BatchRecord {
  const { badSteps } = head.counters;
  return {
    ...record,
    term: head.term,
    parent: head.parent,
    parentState: head.stateDigest,
    components: mapComponents(record.components, (one, name) => ({
      ...one,
      profile: componentOf(head.termRecord.components, name).profile.id,
    })),
    before: { ...record.before, badSteps },
    after: { ...record.after, badSteps },
    adopted: record.adopted ?? { term: record.term, record: digest },
    writer,
  };
}
