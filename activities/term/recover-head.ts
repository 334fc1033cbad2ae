/** The state of a run, derived from the store whenever its workflow starts, resumes or was rolled back. */
import { isValidationDue } from '../../core/recipe/index.ts';
import type { DesiredState } from '../../core/run-states.ts';
import type { Head } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { RunContext, RunContexts, RunRef } from './run-context.ts';

export interface RecoveredHead {
  /** 0: no term yet. */
  readonly term: number;
  readonly position: number;
  readonly iterations: number;
  /** A batch is committed and not applied: its update comes first. */
  readonly pending: boolean;
  readonly wish: DesiredState;
  /** The policy at this position is due for validation. */
  readonly evaluationDue: boolean;
  readonly valOnly: boolean;
}

export async function recoverHead(ports: ActivityPorts, contexts: RunContexts, ref: RunRef): Promise<RecoveredHead> {
  ports.dispatcher.runResumed(ref.runId);
  ports.events.begin(ref.runId);
  // Read from the store, not from this process's cache: a record may have been lost.
  (await contexts.log(ref)).forget();
  const { context, head } = await contexts.head(ref);
  const hole = await ports.findHole(context.log, head);
  if (hole !== undefined) throw hole;
  await ports.endSweep(context.log, ports.now());
  const status = await context.log.status.newest();
  const position = head?.position ?? (await context.log.run()).origin?.position ?? 0;
  return {
    term: head?.term ?? 0,
    position,
    iterations: context.iterations,
    pending: head?.pending !== undefined,
    wish: status?.wish ?? 'run',
    evaluationDue: await isValidationMissing(context, head, position),
    valOnly: context.recipe.trainer.val_only,
  };
}

/** True for a validation that a stop or a crash prevented after its update. */
async function isValidationMissing(
  { log, recipe, inputs, iterations }: RunContext,
  head: Head | undefined,
  position: number,
): Promise<boolean> {
  if (inputs.validation === undefined || !isValidationDue(recipe, position, iterations)) return false;
  if (head === undefined || !(await log.evaluations.has(position))) return true;
  // Of a term that begins with the state of a standby, the term before has validated another state.
  return (
    head.termRecord.standby !== undefined && (await log.evaluations.at(position))?.weightsDigest !== head.weightsDigest
  );
}
