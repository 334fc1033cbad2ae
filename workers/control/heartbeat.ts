/** Waiting activities send heartbeats to Temporal, and receive their cancellation in the answers. */
import type { Context } from '@temporalio/activity';

/** Rejects with the cancellation's reason when the activity is cancelled, timed out or its worker shuts down. */
export async function heartbeating<T>(
  context: Context,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  context.heartbeat();
  const timer = setInterval(() => context.heartbeat(), timeoutMs / 4);
  try {
    return await Promise.race([work(context.cancellationSignal), context.cancelled]);
  } finally {
    clearInterval(timer);
  }
}
