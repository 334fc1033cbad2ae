/**
 * The place in the log where a stage begins. Where this process has left the log, a stage begins at once, and looks
 * beside its work whether another process drives the run by now. Elsewhere it looks first.
 *
 * ```
 *   beginStage ──┬─► work: jobs ─────────┐
 *                └─► look: newest term ──┴─► the stage commits its record
 * ```
 *
 * A process that was overtaken learns it from the look, and its work ends. It could not commit anyway: the term is
 * closed, or has a record at the key.
 */
import { damage } from '../../core/records/damage.ts';
import { TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { outOfDateType } from '../../core/wire/workflow.ts';
import type { Head } from '../../log/run/run-log.ts';
import type { RunContext, RunContexts, RunRef } from '../term/run-context.ts';
import type { StageServices } from '../services.ts';

export interface Stage {
  readonly context: RunContext;
  readonly head: Head;
  /** Rejects when the stage should not have begun here. */
  readonly look: Promise<void>;
}

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
  if (isAt(head, ref, orCommitted)) return { context, head };
  throw outOfDate(ref, `the log ends at position ${head.position}, the workflow is at ${ref.position}`);
}

/** Finds where a stage begins. Throws what `headOf` throws, unless only the look finds it. */
export async function beginStage(contexts: RunContexts, ref: RunRef, orCommitted = false): Promise<Stage> {
  const own = await contexts.ownHead(ref);
  const isOwn = own !== undefined && isAt(own.head, ref, orCommitted);
  const begun = isOwn ? own : await headOf(contexts, ref, orCommitted);
  const look = isOwn ? lookFrom(contexts, ref, begun) : Promise.resolve();
  look.catch(() => {}); // whoever waits for it gets the error
  return { ...begun, look };
}

/** Does the work of a stage beside its look, which ends the work when it fails. Rejects with the error of the look. */
export async function besideLook<T>(
  { ports }: Pick<StageServices, 'ports'>,
  { look }: Pick<Stage, 'look'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return ports.whileHeartbeating(async (signal) => {
    const overtaken = new AbortController();
    look.catch((error: unknown) => overtaken.abort(error));
    const [done] = await Promise.allSettled([work(AbortSignal.any([signal, overtaken.signal]))]);
    await look;
    if (done.status === 'rejected') throw done.reason;
    return done.value;
  });
}

async function lookFrom(
  contexts: RunContexts,
  ref: RunRef,
  { context: { log }, head: { term } }: Omit<Stage, 'look'>,
): Promise<void> {
  if (await log.hasTerm(term)) return;
  await headOf(contexts, ref); // which says who drives the run now
  throw outOfDate(ref, `term ${term} has ended`);
}

function isAt({ position, pending }: Head, ref: RunRef, orCommitted: boolean): boolean {
  const committed = orCommitted && pending === undefined && position === (ref.position ?? 0) + 1;
  return ref.position === undefined || position === ref.position || committed;
}

const outOfDate = ({ runId }: RunRef, message: string) => new TerminalError(outOfDateType, message, { where: runId });

/** Stages come after openTerm, so a missing term record was lost. It never means a new run. */
function needHead<T>(head: T | undefined, runId: string): T {
  if (head === undefined)
    throw damage('MissingRecord', keys.term(runId, 1), 'expected the record of the first term, found nothing');
  return head;
}
