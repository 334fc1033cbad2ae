/** pause, stop, cancel, resume: the wish goes to the store first, then to whoever drives the run. */
import { TerminalError } from '../../core/errors.ts';
import type { StatusEntry, Wish } from '../../core/records/schema.ts';
import { appendStatus } from '../../infra/store/status.ts';
import type { RunDriver } from './driver.ts';
import type { FoundRun } from './find.ts';
import type { TermWish } from './next-term.ts';
import { endedStates } from './summary.ts';

/** What a wish met. */
export interface Wished {
  readonly entry: StatusEntry;
  readonly met: Met;
  /** The other stack, when it is `elsewhere`. */
  readonly owner?: string;
}

/**
 * `told`: a workflow has the wish. `nobody`: no workflow drives the run. `stack-down`: it is noted and read at the next
 * start. `elsewhere`: it is noted, and the stack that drives the run reads it after its update.
 */
export type Met = 'told' | 'nobody' | 'stack-down' | 'elsewhere';

/** What is said of a wish that was noted for another stack. */
export function elsewhereText(runId: string, owner: string): string {
  return `noted: ${owner} drives it and reads this after its update; when it is gone for good, petrel resume ${runId} --accept takes the run over`;
}

/** `here`: the name of this stack. Throws TerminalError `Conflict` for a run that has ended. */
export async function wish(
  run: FoundRun,
  what: Exclude<Wish, 'run'>,
  driver: RunDriver | undefined,
  here: string,
  now: Date,
): Promise<Wished> {
  refuseWish(run, await run.log.status(), what);
  const entry = await appendStatus(run.log, { wish: what }, now);
  const owner = (await run.log.newestTerm())?.record.owner ?? here;
  if (owner !== here) return { entry, met: 'elsewhere', owner };
  if (driver === undefined) return { entry, met: 'stack-down' };
  if ((await driver.workflow()) === 'ended') return { entry, met: 'nobody' };
  await driver.signal(what);
  return { entry, met: 'told' };
}

/** The wish of a run that nobody drives is fulfilled here when nothing needs to be computed for it: a cancel, a pause. */
export async function fulfil(run: FoundRun, what: 'cancel' | 'pause', now: Date): Promise<StatusEntry> {
  return appendStatus(run.log, { state: what === 'cancel' ? 'cancelled' : 'paused' }, now);
}

/**
 * Starts or joins the workflow of a run that may go on. A run that had ended is queued again, so that nobody takes the
 * old end for the new one. `refuseResume` comes first.
 */
export async function resume(run: FoundRun, driver: RunDriver, now: Date): Promise<StatusEntry> {
  const before = await run.log.status();
  const ended = before !== undefined && endedStates.has(before.state);
  const entry = await appendStatus(run.log, { wish: 'run', ...(ended ? { state: 'queued' as const } : {}) }, now);
  await driver.start(ended);
  await driver.signal('run');
  return entry;
}

/** A run that is done goes on only from an earlier iteration or with a changed recipe, one that was cancelled only with --from. */
export function refuseResume(
  { runId }: FoundRun,
  status: StatusEntry | undefined,
  { from, changed }: Pick<TermWish, 'from' | 'changed'>,
): void {
  if (status?.state === 'completed' && from === undefined && changed === undefined) {
    throw new TerminalError('Conflict', `${runId} is completed: all its iterations are done`, {
      hint: `petrel resume ${runId} trainer.total_training_steps=… goes on for longer; petrel ckpt export ${runId} --out ./trained`,
    });
  }
  if (status?.state === 'cancelled' && from === undefined) {
    throw new TerminalError('Conflict', `${runId} was cancelled: it goes on only from an iteration that you name`, {
      hint: `petrel resume ${runId} --from <k>`,
    });
  }
}

/** Asked before the stack is brought up or a person is asked, too. */
export function refuseWish({ runId }: FoundRun, status: StatusEntry | undefined, what: Exclude<Wish, 'run'>): void {
  if (status === undefined || !endedStates.has(status.state)) return;
  const { state } = status;
  const hint =
    state === 'completed' || state === 'cancelled' ? `petrel rm ${runId} deletes it` : `petrel resume ${runId} goes on`;
  throw new TerminalError('Conflict', `${runId} is ${state}: there is nothing to ${what}`, { hint });
}
