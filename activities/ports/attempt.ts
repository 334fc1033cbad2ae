/** The attempt of an activity: its clock, and its ties to Temporal. */

export interface AttemptPorts {
  readonly now: () => Date;
  /**
   * Called when an attempt starts. The returned function says whether the attempt has timed out since; then another
   * attempt may have done its work.
   */
  readonly beginAttempt: () => () => boolean;
  /** Runs a wait with heartbeats to Temporal; the wait ends when the activity is cancelled. */
  readonly whileHeartbeating: <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}
