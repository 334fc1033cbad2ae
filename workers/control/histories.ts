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
/**
 * The server's time for one attempt of a workflow task, its default. After a pause between two looks that is this long,
 * attempts may have ended because this process was stopped, and so may the one that was under way. They say nothing of
 * the history.
 */
const attemptTimeoutMs = 10_000;

interface Watched {
  readonly execution: string;
  readonly events: number;
  /** Attempt of its task when this process first saw it. Earlier attempts may belong to an earlier process. */
  readonly firstAttempt: number;
  /** Time of this process's last look. */
  readonly lookedMs: number;
  /** Time until which attempts do not count, because this process was stopped before. */
  readonly soundFromMs: number;
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
      this.#watch(runId, now, now.taskAttempts, before?.soundFromMs ?? 0);
      return undefined;
    }
    if (now.events < before.events)
      return `its history has ${now.events} events and had ${before.events}: an older copy of Temporal's database was restored`;
    const wasStopped = this.#nowMs() - before.lookedMs >= attemptTimeoutMs;
    const soundFromMs = wasStopped ? this.#nowMs() + attemptTimeoutMs : before.soundFromMs;
    if (this.#nowMs() < soundFromMs) {
      this.#watch(runId, now, now.taskAttempts, soundFromMs);
      return undefined;
    }
    // A lower attempt than before belongs to a new task, and this process had all attempts of that one.
    const firstAttempt = now.taskAttempts < before.firstAttempt ? 1 : before.firstAttempt;
    this.#watch(runId, now, firstAttempt, soundFromMs);
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

  #watch(runId: string, { execution, events }: SeenHistory, attempt: number, soundFromMs: number): void {
    const lookedMs = this.#nowMs();
    this.#before.set(runId, { execution, events, firstAttempt: Math.max(attempt, 1), lookedMs, soundFromMs });
  }
}
