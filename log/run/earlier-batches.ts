/**
 * Batches that a term applies again, because it starts with another state or has another arithmetic. The iterations
 * after its start were committed in earlier terms: the new term keeps their batches and computes only their updates
 * again.
 */
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import { batchDecision, termRecord } from '../../core/records/schema.ts';
import type { BatchRecord, TermRecord } from '../../core/records/schema.ts';
import { beginOf } from './lineage.ts';
import { needRecord, readRecord } from '../objects/records.ts';
import type { Stored } from '../objects/records.ts';
import type { Head, RunLog } from './run-log.ts';

/**
 * The earlier batch that the head's term applies next; undefined when none is left, or when a batch already waits for
 * its update. Throws PauseError `MissingRecord` when the batch is missing.
 */
export async function batchToAdopt(log: RunLog, head: Head): Promise<Stored<BatchRecord> | undefined> {
  const k = head.position + 1;
  if (head.pending !== undefined) return undefined;
  let term = head.termRecord;
  let source = sourceOf(term, k);
  if (source === undefined) return undefined;
  while (source !== undefined) {
    term = await holderOf(log, k, source);
    const key = keys.batch(log.runId, term.term, k);
    const { digest, record } = (await readRecord(log.store, key, batchDecision)) ?? {};
    if (digest !== undefined && record !== undefined && record.decision !== 'seal') return { key, digest, record };
    // That term should have applied the batch again too, and was closed before it did.
    source = sourceOf(term, k);
  }
  throw damage(
    'MissingRecord',
    keys.batch(log.runId, term.term, k),
    `the batch that term ${head.term} must apply again is missing`,
  );
}

/**
 * The earlier term that holds the batch which `term` applies again as iteration k; undefined when it applies none
 * again.
 */
function sourceOf(term: TermRecord, k: number): number | undefined {
  return term.adopts !== undefined && k > beginOf(term) && k <= term.adopts.until ? term.adopts.term : undefined;
}

/** The term whose folder holds iteration k, in the log that ends with the given term. */
async function holderOf(log: RunLog, k: number, newest: number): Promise<TermRecord> {
  let term = await termOf(log, newest);
  while (k <= beginOf(term) && term.parent !== undefined) term = await termOf(log, term.parent.term);
  return term;
}

async function termOf(log: RunLog, n: number): Promise<TermRecord> {
  return (await needRecord(log.store, keys.term(log.runId, n), termRecord)).record;
}

/** The last iteration that has a batch: committed, waiting for its update, or to be applied again. */
export function adoptableUntil({ position, pending, termRecord }: Head): number {
  const committed = pending === undefined ? position : position + 1;
  return Math.max(committed, termRecord.adopts?.until ?? 0);
}
