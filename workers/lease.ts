/** A trainer belongs to one run at a time: its state is dear to load. Others wait, visibly queued. */

/** A run that sends its trainer nothing for this long gives it up; that costs a checkpoint load, nothing else. */
const idleMs = 30_000;

export interface LeaseEvents {
  /** Taken or given back: others should know at once. */
  readonly changed: () => void;
  /** The run gave it back: what is in memory for it can go. */
  readonly freed: (runId: string) => void;
}

export class TrainerLease {
  readonly #events: LeaseEvents;
  #runId: string | undefined;
  #lastUse = 0;
  #inUse = 0;
  /** Given back while in use: free as soon as that ends. */
  #givenBack = false;

  constructor(events: LeaseEvents) {
    this.#events = events;
  }

  get runId(): string | undefined {
    return this.#runId;
  }

  /** Why a job of this run must wait; undefined when it may go on. */
  refuse(runId: string, now: number): string | undefined {
    const free =
      this.#runId === undefined || this.#runId === runId || (this.#inUse === 0 && now - this.#lastUse > idleMs);
    return free ? undefined : `the trainer is leased to ${this.#runId}`;
  }

  /** Takes or keeps the lease for the length of some work. */
  async use<T>(runId: string, work: () => Promise<T>): Promise<T> {
    const taken = this.#runId !== runId;
    this.#runId = runId;
    this.#givenBack = false;
    this.#inUse += 1;
    if (taken) this.#events.changed();
    try {
      return await work();
    } finally {
      this.#inUse -= 1;
      this.#lastUse = Date.now();
      if (this.#givenBack) this.release(runId);
    }
  }

  /** Other work of the leased run keeps it too. */
  touch(runId: string): void {
    if (this.#runId === runId) this.#lastUse = Date.now();
  }

  release(runId: string): void {
    if (this.#runId !== runId) return;
    this.#givenBack = this.#inUse > 0;
    if (this.#givenBack) return;
    this.#runId = undefined;
    this.#events.freed(runId);
    this.#events.changed();
  }

  /** Another trainer works for the same run: two states of one run in memory are one too many. */
  yield(runId: string): void {
    if (this.#inUse === 0) this.release(runId);
  }
}
