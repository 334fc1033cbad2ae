import { expect, it } from 'vitest';
import { givenUp } from './given-up.ts';

it('the timeout of an attempt counts from its scheduling, not from the start of its execution', () => {
  const scheduled = (msAgo: number) =>
    givenUp({ currentAttemptScheduledTimestampMs: Date.now() - msAgo, startToCloseTimeoutMs: 60_000 });
  expect([scheduled(0)(), scheduled(60_000)()]).toEqual([false, true]);
});
