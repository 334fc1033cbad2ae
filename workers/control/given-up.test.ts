import { expect, it } from 'vitest';
import { givenUp } from './given-up.ts';

it('the time of an attempt counts from when it was scheduled, not from when its process came to begin it', () => {
  const scheduled = (msAgo: number) =>
    givenUp({ currentAttemptScheduledTimestampMs: Date.now() - msAgo, startToCloseTimeoutMs: 60_000 });
  expect([scheduled(0)(), scheduled(60_000)()]).toEqual([false, true]);
});
