/** pause, stop, cancel, resume: the wish goes to the store first, then to whoever drives the run. */
import { TerminalError } from '../../core/errors.ts';
import type { StatusEntry, Wish } from '../../core/records/schema.ts';
import { appendStatus } from '../../infra/store/status.ts';
import type { RunDriver } from './driver.ts';
import type { FoundRun } from './find.ts';
import { endedStates } from './summary.ts';

/** What a wish met. */
export interface Wished {
  readonly entry: StatusEntry;
  /** `told`: a workflow has the wish. `nobody`: no workflow drives the run. `stack-down`: it is noted and read at the next start. */
  readonly met: 'told' | 'nobody' | 'stack-down';
}

/** Throws TerminalError `Conflict` for a run that has ended. */
export async function wish(run: FoundRun, what: Exclude<Wish, 'run'>, driver: RunDriver | undefined, now: Date): Promise<Wished> {
  refuseWish(run, await run.log.status(), what);
  const entry = await appendStatus(run.log, { wish: what }, now);
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
 * old end for the new one. Throws TerminalError `Conflict` for one that cannot go on.
 */
export async function resume(run: FoundRun, driver: RunDriver, now: Date): Promise<StatusEntry> {
  const before = await run.log.status();
  refuseResume(run, before);
  const ended = before !== undefined && endedStates.has(before.state);
  const entry = await appendStatus(run.log, { wish: 'run', ...(ended ? { state: 'queued' as const } : {}) }, now);
  await driver.start(ended);
  await driver.signal('run');
  return entry;
}

/** Asked before the stack is brought up, too. */
export function refuseResume({ runId }: FoundRun, status: StatusEntry | undefined): void {
  if (status?.state === 'completed') {
    throw new TerminalError('Conflict', `${runId} is completed: all its iterations are done`, { hint: `petrel ckpt export ${runId} --out ./trained` });
  }
  if (status?.state === 'cancelled') {
    throw new TerminalError('Conflict', `${runId} was cancelled: it could go on with --from only, which is not built yet`, { hint: `petrel rm ${runId}, or start another run` });
  }
}

/** Asked before the stack is brought up or a person is asked, too. */
export function refuseWish({ runId }: FoundRun, status: StatusEntry | undefined, what: Exclude<Wish, 'run'>): void {
  if (status === undefined || !endedStates.has(status.state)) return;
  const { state } = status;
  const hint = state === 'completed' || state === 'cancelled' ? `petrel rm ${runId} deletes it` : `petrel resume ${runId} goes on`;
  throw new TerminalError('Conflict', `${runId} is ${state}: there is nothing to ${what}`, { hint });
}
