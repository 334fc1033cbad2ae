/**
 * Detects attempts that have timed out. Such an attempt must not write: another attempt has done its work, and the user
 * may have acted on the result.
 */
import type { Context } from '@temporalio/activity';

/**
 * A process may have been suspended between receiving an attempt and executing it, so the time counts from the
 * scheduling. An attempt that waited long for a poller counts as timed out too early, and is repeated.
 */
export function givenUp({
  currentAttemptScheduledTimestampMs,
  startToCloseTimeoutMs,
}: Pick<Context['info'], 'currentAttemptScheduledTimestampMs' | 'startToCloseTimeoutMs'>): () => boolean {
  const until = currentAttemptScheduledTimestampMs + startToCloseTimeoutMs;
  return () => Date.now() >= until;
}
