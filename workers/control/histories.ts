/**
 * A process remembers the histories of its workflows, so that their tasks need not bring them along. When an older copy of
 * Temporal's database is put back, what it remembers is of a past that never was, and the SDK may get stuck on it.
 */

/** A workflow as the server tells of it. */
export interface SeenHistory {
  /** Of this execution; a run may have many, one after the other. */
  readonly execution: string;
  readonly events: number;
  /** How often its present task was handed out. */
  readonly taskAttempts: number;
}

/** Tries of one task that failed while this process was there to do it, after which it is stuck: the server waits long before it hands out a fourth. */
const stuckAttempts = 2;
/** The next one is ended no sooner than this after a stuck one was, and twice as long after each: what fails every time is not begun anew for ever. */
const firstPauseMs = 2_000;
const longestPauseMs = 600_000;
/** An execution that came this far, a few iterations, was not begun in vain. */
const grownEvents = 100;

interface Watched {
  readonly execution: string;
  readonly events: number;
  /** The try that its task was at when this process came to it: those before may be its predecessor's. */
  readonly firstAttempt: number;
}

export class Histories {
  readonly #nowMs: () => number;
  readonly #before = new Map<string, Watched>();
  readonly #pauses = new Map<string, { readonly ms: number; readonly until: number }>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Why what this process remembers cannot be trusted; undefined when it may be right. */
  doubt(runId: string, now: SeenHistory): string | undefined {
    const before = this.#before.get(runId);
    if (before?.execution !== now.execution) {
      this.#watch(runId, now, now.taskAttempts);
      return undefined;
    }
    if (now.events < before.events)
      return `its history has ${now.events} events and had ${before.events}: an older copy of Temporal's database was put back`;
    // A signal makes a history longer, too. A task at an earlier try than that is another, and all its tries are this process's.
    const firstAttempt = now.taskAttempts < before.firstAttempt ? 1 : before.firstAttempt;
    this.#watch(runId, now, firstAttempt);
    if (now.events >= grownEvents) this.#pauses.delete(runId);
    const failed = now.taskAttempts - firstAttempt;
    return failed >= stuckAttempts && this.#nowMs() >= (this.#pauses.get(runId)?.until ?? 0)
      ? `its task was not done in ${failed} tries`
      : undefined;
  }

  /** The execution that was in doubt is over, and another is begun. */
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
