/** The port to the limits of a run's requests, which hold over all its processes. */

export interface Permits {
  /**
   * Waits for its turn. @throws the signal's reason; RetryableError `NoPermits` when nobody has given permits for a
   * while.
   */
  acquire(tokens: number, signal: AbortSignal): Promise<Permit>;
}

export interface Permit {
  /** Aborts when the permit may have been given to another process: its request must end. */
  readonly signal: AbortSignal;
  /** Gives it back. Call it once, when the request is over. */
  release(outcome?: PermitOutcome): void;
}

export interface PermitOutcome {
  /** Tokens that the request had. */
  readonly tokens?: number;
  /** The endpoint asked everybody to wait for so long. */
  readonly holdMs?: number;
}
