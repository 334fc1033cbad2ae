/**
 * When the control process must make sure that a workflow knows the desired state of its run. A signal makes the history
 * longer, and a run may be paused for a month: so there is none while state and desired state agree.
 */
import type { StatusEntry } from '../../core/records/schema.ts';

/** The command that sets a desired state also signals it. The first reminder comes after this time. */
const firstMs = 1_000;
/** The time between two reminders doubles up to this: a stop that fails for want of room is tried again in vain. */
const longestMs = 600_000;

type Seen = Pick<StatusEntry, 'wish' | 'state'>;

interface Reminder {
  readonly execution: string;
  /** The desired state that is not reached; undefined when state and desired state agree. */
  readonly unreached: string | undefined;
  /** Time until the reminder after the next one. */
  readonly pauseMs: number;
  readonly dueAtMs: number;
}

export class Reminders {
  readonly #nowMs: () => number;
  readonly #byRun = new Map<string, Reminder>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /**
   * Whether to compare what this workflow execution knows with the desired state now. It is due at once for an execution
   * that this process has not seen: it may come from an older Temporal database, where a run that goes on was paused.
   */
  isDue(runId: string, execution: string, status: Seen): boolean {
    const last = this.#byRun.get(runId);
    if (last?.execution !== execution) return true;
    const unreached = isReached(status) ? undefined : status.wish;
    if (unreached !== last.unreached) this.#set(runId, { execution, unreached, pauseMs: firstMs });
    return unreached !== undefined && this.#nowMs() >= (this.#byRun.get(runId)?.dueAtMs ?? 0);
  }

  /** The workflow knows the desired state now. While the run does not reach it, the next comparison comes later. */
  done(runId: string, execution: string, status: Seen): void {
    const last = this.#byRun.get(runId);
    const unreached = isReached(status) ? undefined : status.wish;
    const again = last?.execution === execution && last.unreached === unreached;
    this.#set(runId, { execution, unreached, pauseMs: again ? Math.min(last.pauseMs * 2, longestMs) : firstMs });
  }

  forget(runId: string): void {
    this.#byRun.delete(runId);
  }

  #set(runId: string, reminder: Omit<Reminder, 'dueAtMs'>): void {
    this.#byRun.set(runId, { ...reminder, dueAtMs: this.#nowMs() + reminder.pauseMs });
  }
}

/** A run that has ended has no desired state to reach: `resume` starts a new workflow. */
function isReached({ wish, state }: Seen): boolean {
  if (state === 'paused') return wish === 'pause';
  return state === 'queued' || state === 'running' ? wish === 'run' : true;
}
