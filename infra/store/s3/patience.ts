/** How long a request to the store is retried before the caller gets the error. */
import { setTimeout as delay } from 'node:timers/promises';
import { RetryableError } from '../../../core/errors.ts';
import { describeFailure, isTransient, isWithoutCredentials, toPetrelError } from './failures.ts';
import type { RequestOf } from './failures.ts';

export interface Patience {
  readonly attempts: number;
  /**
   * Pauses double from the first to the longest. Each is shortened by a random amount, so that many clients do not
   * retry at the same time.
   */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** A connection without traffic for this time is closed. */
  readonly idleMs: number;
  /** Time from the first byte of a request to the first byte of its reply. */
  readonly replyMs: number;
}

/**
 * The usual patience is about ten seconds of refusals, or some minutes of silence. The caller must wait out longer
 * outages.
 */
export const usualPatience: Patience = {
  attempts: 8,
  firstPauseMs: 100,
  longestPauseMs: 4_000,
  idleMs: 30_000,
  replyMs: 120_000,
};

/**
 * Runs `attempt` until it succeeds or fails for good. Every failure is thrown as a PetrelError; a failure that
 * outlasted all attempts as RetryableError `StoreUnavailable`.
 */
export async function insist<T>(request: RequestOf, patience: Patience, attempt: () => Promise<T>): Promise<T> {
  const started = performance.now();
  for (let made = 1; ; made++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error) && !(request.worked === true && isWithoutCredentials(error)))
        throw toPetrelError(error, request);
      if (made >= patience.attempts) throw unavailable(error, request, made, performance.now() - started);
      await delay(pauseMs(patience, made));
    }
  }
}

function pauseMs({ firstPauseMs, longestPauseMs }: Patience, made: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** (made - 1)) * (0.5 + Math.random() / 2);
}

function unavailable(error: unknown, { what, where }: RequestOf, made: number, tookMs: number): RetryableError {
  return new RetryableError(
    'StoreUnavailable',
    `${what}: ${made} attempts in ${(tookMs / 1000).toFixed(1)} s, the last: ${describeFailure(error)}`,
    {
      where,
      hint: 'nothing is lost: the run continues when the store answers again',
      cause: error,
    },
  );
}
