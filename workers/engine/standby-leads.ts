/** A trainer that has followed a run in other bits than its leader, and is asked to lead it. */
import { TerminalError } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { batchDecision } from '../../core/records/schema.ts';
import { standbyLeadsCode } from '../../core/wire/other-replay.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { hasApplied } from './recover.ts';
import type { RunState } from './state.ts';

interface Place {
  readonly runId: RunId;
  readonly at: { readonly term: number; readonly iteration: number };
}

/**
 * Throws TerminalError `StandbyLeads` when this state has got the batches up to the job's position and no state of the log has
 * its bits. `where` is the key of the result that names it. The control process then opens a term that begins with it.
 */
export async function refuseToLead(state: RunState, { runId, at }: Place, log: RunLog): Promise<void> {
  const result = await resultOf(state, at, log);
  if (result === undefined || (await log.store.head(result)) === undefined) return;
  throw new TerminalError(
    standbyLeadsCode,
    `this trainer has followed ${runId} to iteration ${at.iteration} in other bits than the one that led it`,
    { where: result },
  );
}

/** Key of the result that names the state at this position. It may have got the batch after it, too. */
async function resultOf(state: RunState, { term, iteration }: Place['at'], log: RunLog) {
  const { madeBy } = state;
  if (state.tag === undefined || madeBy === undefined) return undefined;
  if (await hasApplied(state, iteration, log)) return madeBy.result;
  const next = await log.read(keys.batch(log.runId, term, iteration + 1), batchDecision);
  return next?.digest === madeBy.batch ? madeBy.resultBefore : undefined;
}
