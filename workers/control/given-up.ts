/** An attempt that Temporal no longer waits for must not write: another has done its work, and the run's owner may have acted on it. */
import type { Context } from '@temporalio/activity';

/**
 * A process may have stood still between the attempt's being handed out and its beginning, so the time counts from when it
 * was scheduled. One that waited long to be handed out is given up too early, and made again.
 */
export function givenUp({
  currentAttemptScheduledTimestampMs,
  startToCloseTimeoutMs,
}: Pick<Context['info'], 'currentAttemptScheduledTimestampMs' | 'startToCloseTimeoutMs'>): () => boolean {
  const until = currentAttemptScheduledTimestampMs + startToCloseTimeoutMs;
  return () => Date.now() >= until;
}
