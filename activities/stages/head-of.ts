/** The head that a stage works on. */
import { damage } from '../../core/damage.ts';
import { TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { outOfDateType } from '../../core/wire/workflow.ts';
import type { Head } from '../../infra/store/run-log.ts';
import type { RunContext, RunContexts, RunRef } from '../run-context.ts';

/**
 * The workflow's position may be too low: an older Temporal database was restored, or the workflow's process was
 * suspended while another process drove the run. Its request would then belong to an earlier iteration. @throws
 * TerminalError `OutOfDate`. With `orCommitted` the position may be one higher, as the stage itself leaves it.
 */
export async function headOf(
  contexts: RunContexts,
  ref: RunRef,
  orCommitted = false,
): Promise<{ readonly context: RunContext; readonly head: Head }> {
  const { context, head: found } = await contexts.head(ref);
  const head = needHead(found, ref.runId);
  const committed = orCommitted && head.pending === undefined && head.position === (ref.position ?? 0) + 1;
  if (ref.position === undefined || head.position === ref.position || committed) return { context, head };
  throw new TerminalError(
    outOfDateType,
    `the log ends at position ${head.position}, the workflow is at ${ref.position}`,
    { where: ref.runId },
  );
}

/** Stages come after openTerm, so a missing term record was lost. It never means a new run. */
function needHead<T>(head: T | undefined, runId: string): T {
  if (head === undefined)
    throw damage('MissingRecord', keys.term(runId, 1), 'expected the record of the first term, found nothing');
  return head;
}
