/** Polling with a timeout, for facts that send no event. */
import { setTimeout as delay } from 'node:timers/promises';

export interface PollOptions {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Polls until `probe` returns something other than undefined or false, and resolves with it; with undefined after the
 * timeout.
 */
export async function poll<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  options: PollOptions,
): Promise<T | undefined> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    options.signal?.throwIfAborted();
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() >= deadline) return undefined;
    await delay(options.everyMs, undefined, options.signal ? { signal: options.signal } : {});
  }
}

/** Repeats `attempt` until it succeeds. Rejects with its last error after the timeout. */
export async function retry<T extends object>(attempt: () => Promise<T>, options: PollOptions): Promise<T> {
  let last: unknown;
  const answer = await poll(
    () =>
      attempt().catch((error: unknown) => {
        last = error;
        return undefined;
      }),
    options,
  );
  if (answer === undefined) throw last;
  return answer;
}
