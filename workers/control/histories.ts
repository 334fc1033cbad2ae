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

/** Tries of one task, while this process was there to do it, after which it is stuck. */
const stuckAttempts = 3;

export class Histories {
  readonly #before = new Map<string, SeenHistory>();

  /** Why what this process remembers cannot be trusted; undefined when it may be right. */
  doubt(runId: string, now: SeenHistory): string | undefined {
    const before = this.#before.get(runId);
    if (before?.execution !== now.execution) {
      this.#before.set(runId, now);
      return undefined;
    }
    if (now.events < before.events) return `its history has ${now.events} events and had ${before.events}: an older copy of Temporal's database was put back`;
    // All tries of a task that came up since this process looked last are its own.
    const tries = now.taskAttempts - (now.events === before.events ? before.taskAttempts : 0);
    if (now.events > before.events) this.#before.set(runId, { ...now, taskAttempts: 0 });
    return tries >= stuckAttempts ? `its task was not done in ${tries} tries` : undefined;
  }

  forget(runId: string): void {
    this.#before.delete(runId);
  }
}
