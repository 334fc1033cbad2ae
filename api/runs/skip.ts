/** `petrel resume <run> --skip`: skips the batch that waits at the head, because the user decided so. */
import { TerminalError } from '../../core/errors.ts';
import { skipPendingBatch } from '../../log/run/skip.ts';
import type { FoundRun } from '../stores/find.ts';
import { endedStates } from '../../core/run-states.ts';

/**
 * Returns what was skipped. Throws TerminalError `Conflict` while the run is running, `NothingToSkip` when no batch
 * waits.
 */
export async function skipBatch({ runId, log }: FoundRun): Promise<string> {
  const status = await log.status.newest();
  if (status !== undefined && status.state !== 'paused' && !endedStates.has(status.state)) {
    throw new TerminalError(
      'Conflict',
      `${runId} is ${status.state}: a batch is skipped while the run is paused or stopped`,
      { hint: `petrel pause ${runId}` },
    );
  }
  const update = await skipPendingBatch(log, "skipped by the run's owner", {
    process: `petrel-${process.pid}`,
    at: new Date().toISOString(),
  });
  return update.outcome === 'skipped'
    ? `iteration ${update.iteration} is skipped: its batch is not trained on`
    : `iteration ${update.iteration} has been applied: nothing is skipped`;
}
