/** A trainer that has followed a run to a state whose last bits are not those of the log, and is asked to lead it. */
import { isDamage } from '../../../core/records/damage.ts';
import { TerminalError } from '../../../core/errors.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import { keys } from '../../../core/records/keys.ts';
import { batchDecision, resultRecord } from '../../../core/records/schema.ts';
import { standbyLeadsCode } from '../../../core/wire/trainer-answers.ts';
import { readRecord } from '../../../log/objects/records.ts';
import type { RunLog } from '../../../log/run/run-log.ts';
import { hasApplied } from './recover.ts';
import { namesOf } from '../state/state.ts';
import type { RunState } from '../state/state.ts';

interface Place {
  readonly runId: RunId;
  readonly at: { readonly term: number; readonly iteration: number };
}

/**
 * Throws TerminalError `StandbyLeads` when this process has applied the batches up to the job's position, and got
 * another state there than `target`, that of the log. `where` is the key of the result that names it. The control
 * process then opens a term that begins with it.
 */
export async function refuseToLead(state: RunState, target: Digest, { runId, at }: Place, log: RunLog): Promise<void> {
  const reached = await reachedAt(state, at, log);
  if (reached?.result === undefined || reached.state === target) return;
  // Another trainer may have written the result of the job before this one did.
  if ((await stateIn(reached.result, log)) !== reached.state) return;
  throw new TerminalError(
    standbyLeadsCode,
    `this trainer has followed ${runId} to iteration ${at.iteration}, to a state whose last bits are its own`,
    { where: reached.result },
  );
}

/** What this process has made of the batches up to this position. It may have applied the batch after it, too. */
async function reachedAt({ tag, madeBy }: RunState, { term, iteration }: Place['at'], log: RunLog) {
  if (tag === undefined || madeBy === undefined) return undefined;
  if (await hasApplied(madeBy, iteration, log)) return { result: madeBy.result, state: tag.stateDigest };
  const next = await log.read(keys.batch(log.runId, term, iteration + 1), batchDecision);
  const isApplied =
    next !== undefined &&
    next.record.decision !== 'seal' &&
    namesOf({ ...next, record: next.record }).original === madeBy.original;
  return isApplied ? { result: madeBy.resultBefore, state: madeBy.from } : undefined;
}

/** The state that a result names; undefined when it is missing or damaged. */
async function stateIn(result: string, { store }: RunLog): Promise<unknown> {
  try {
    return (await readRecord(store, result, resultRecord))?.record.output['stateDigest'];
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
