/** Errors for a store that is not where it was. They are retryable, because it may be back at any moment. */
import { RetryableError } from './errors.ts';
import type { RunId } from './ids.ts';

const hint = 'mount its disk, or move the folder or a complete copy of it back; the run then continues';

/** The error for a missing store. */
export function storeGone(where: string): RetryableError {
  return new RetryableError('StoreGone', `the store ${where} is gone`, { hint });
}

/** The error for a run that is missing because another store is at this place. */
export function runGone(runId: RunId, store: string): RetryableError {
  return new RetryableError('StoreGone', `${runId} is not in the store ${store}`, { hint });
}
