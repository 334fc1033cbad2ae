/** Skips a committed batch: an update record that leaves the state unchanged. */
import { TerminalError } from '../../core/errors.ts';
import { mainName, mapComponents, stepsOfBatch } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, updateRecord } from '../../core/records/schema.ts';
import type { UpdateRecord, Writer } from '../../core/records/schema.ts';
import { findHole } from './log-holes.ts';
import { decide } from '../objects/records.ts';
import type { RunLog } from './run-log.ts';

/**
 * Decides the update of the batch that waits at the head. If another process has committed the update since, that
 * update is returned and nothing is skipped. Throws TerminalError `NothingToSkip` when no batch waits.
 */
export async function skipPendingBatch(log: RunLog, reason: string, writer: Writer): Promise<UpdateRecord> {
  const head = await log.head();
  const hole = await findHole(log, head);
  if (hole !== undefined) throw hole;
  const pending = head?.pending;
  if (head === undefined || pending === undefined || head.seal !== undefined) {
    throw new TerminalError(
      'NothingToSkip',
      `${log.runId} has no batch that waits for its update: iteration ${head?.position ?? 0} is complete`,
      {
        hint: `petrel resume ${log.runId} continues the run`,
      },
    );
  }
  const { record, digest } = pending;
  const { publication: published } = head;
  const policy = mainName(head.components);
  const skipped: UpdateRecord = {
    format: recordFormat,
    runId: log.runId,
    term: head.term,
    iteration: record.iteration,
    batch: digest,
    parentState: head.stateDigest,
    outcome: 'skipped',
    reason,
    stateDigest: head.stateDigest,
    components: mapComponents(head.components, ({ stateDigest, weightsDigest }, name) => ({
      stateDigest,
      weightsDigest,
      publications: name === policy ? { [published.format]: published.digest } : { F32: weightsDigest },
      steps: [],
    })),
    // The learning-rate schedule and the draws advance as if the batch had been applied. It does not count as a bad
    // step.
    after: { ...record.after, badSteps: record.before.badSteps },
    metrics: { 'training/skipped_steps': stepsOfBatch(record.components) },
    timings: {},
    writer,
  };
  const key = keys.update(log.runId, head.term, record.iteration);
  return (await decide(log.store, key, updateRecord, skipped, (other) => other.batch === digest)).record;
}
