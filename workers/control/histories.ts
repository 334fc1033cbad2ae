/**
 * Finds workflows that are stuck. The SDK caches the histories of its workflows. When an older copy of Temporal's
 * database is restored, the cached history and the server's differ, and the workflow's tasks may fail for ever.
 */

/** A workflow as the server describes it. */
export interface SeenHistory {
  /** Id of this execution. A run has many, one after the other. */
  readonly execution: string;
  readonly events: number;
  /** Attempts of its current workflow task. */
  readonly taskAttempts: number;
}

/**
 * After this many failed attempts in this process, a task is stuck. The server waits long before the fourth attempt.
 */
const stuckAttempts = 2;
/**
 * Time from one stuck execution until the next one may be ended. It doubles each time, for a workflow that is always
 * stuck.
 */
const firstPauseMs = 2_000;
const longestPauseMs = 600_000;
/** An execution with this many events has done a few iterations, so the interval is reset. */
const grownEvents = 100;

interface Watched {
  readonly execution: string;
  readonly events: number;
  /** Attempt of its task when this process first saw it. Earlier attempts may belong to an earlier process. */
  readonly firstAttempt: number;
}

export class Histories {
  readonly #nowMs: () => number;
  readonly #before = new Map<string, Watched>();
  readonly #pauses = new Map<string, { readonly ms: number; readonly until: number }>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Why this execution must be replaced; undefined when it seems sound. */
  doubt(runId: string, now: SeenHistory): string | undefined {
    const before = this.#before.get(runId);
    if (before?.execution !== now.execution) {
      this.#watch(runId, now, now.taskAttempts);
      return undefined;
    }
    if (now.events < before.events)
      return `its history has ${now.events} events and had ${before.events}: an older copy of Temporal's database was restored`;
    // A lower attempt than before belongs to a new task, and this process had all attempts of that one.
    const firstAttempt = now.taskAttempts < before.firstAttempt ? 1 : before.firstAttempt;
    this.#watch(runId, now, firstAttempt);
    if (now.events >= grownEvents) this.#pauses.delete(runId);
    const failed = now.taskAttempts - firstAttempt;
    return failed >= stuckAttempts && this.#nowMs() >= (this.#pauses.get(runId)?.until ?? 0)
      ? `its task failed in ${failed} attempts`
      : undefined;
  }

  /** The execution was ended and a new one is being started. */
  ended(runId: string): void {
    this.#before.delete(runId);
    const ms = Math.min((this.#pauses.get(runId)?.ms ?? firstPauseMs / 2) * 2, longestPauseMs);
    this.#pauses.set(runId, { ms, until: this.#nowMs() + ms });
  }

  forget(runId: string): void {
    this.#before.delete(runId);
    this.#pauses.delete(runId);
  }

  #watch(runId: string, { execution, events }: SeenHistory, attempt: number): void {
    this.#before.set(runId, { execution, events, firstAttempt: Math.max(attempt, 1) });
  }
}
