/**
 * Decides when the control process must check that a workflow knows its run's desired state. Each signal makes the
 * history longer, and a run may be paused for a month. So there are no signals while state and desired state agree.
 */
import type { StatusEntry } from '../../core/records/schema.ts';

/** The command that sets a desired state also signals it. The first reminder comes this long after it. */
const firstMs = 1_000;
/**
 * The interval between reminders doubles up to this, for a state that cannot be reached, such as a stop on a full disk.
 */
const longestMs = 600_000;

type Seen = Pick<StatusEntry, 'wish' | 'state'>;

interface Reminder {
  readonly execution: string;
  /** The desired state that is not reached yet; undefined when state and desired state agree. */
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
   * True when this workflow execution's desired state must be compared now. It is due at once for an execution that is
   * new to this process, because it may come from an older Temporal database in which a running run was paused.
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

/** An ended run has no desired state to reach, because `resume` starts a new workflow. */
function isReached({ wish, state }: Seen): boolean {
  if (state === 'paused') return wish === 'pause';
  return state === 'queued' || state === 'running' ? wish === 'run' : true;
}
