import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { drain, InHand } from './drain.ts';
import type { DrainPorts } from './drain.ts';

const notice = { reason: 'SIGTERM', graceMs: 20_000 };
const until = 19_000;

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

interface Scene extends Partial<DrainPorts> {
  readonly progress?: { done: number; total: number };
  /** ms that the job has been at it. */
  readonly elapsed?: number;
}

/** A job in the hand of a worker that is told to leave. Says how it was handed back, if it was. */
function scene(
  role: 'trainer' | 'rollout' | 'reward',
  { progress = { done: 0, total: 0 }, elapsed = 1_000, ...ports }: Scene = {},
) {
  const hand = new InHand(role, { stage: role === 'trainer' ? 'update' : role, runId: 'r' }, { ...progress, note: '' });
  const start = performance.now();
  if (elapsed >= 0) hand.begin(start - elapsed);
  let why: string | undefined;
  hand.handedBack.catch((error: Error) => (why = error.message));
  const done = drain(notice, start + until, {
    hands: () => [hand],
    ended: new Promise(() => {}),
    usualMs: () => undefined,
    saveMs: () => undefined,
    now: () => performance.now(),
    ...ports,
  });
  return {
    hand,
    done,
    why: async (ms = 0) => {
      await vi.advanceTimersByTimeAsync(ms);
      return why;
    },
  };
}

describe('a worker that is told to leave', () => {
  it('finishes an update that will be done in time', async () => {
    expect(await scene('trainer', { progress: { done: 1, total: 10 } }).why(200)).toBeUndefined();
  });

  it('hands back what is not done when time is up', async () => {
    const { why } = scene('trainer');
    expect(await why(18_500)).toBeUndefined();
    expect(await why(1_000)).toBe('handed back: SIGTERM, and the time is up');
  });

  it('hands an update back at once when it would take too long', async () => {
    expect(await scene('trainer', { progress: { done: 1, total: 30 } }).why()).toBe(
      'handed back: SIGTERM: it needs 29.0 s more, and there are 19.0 s',
    );
  });

  it('counts the checkpoint after the update', async () => {
    expect(await scene('trainer', { progress: { done: 1, total: 10 }, saveMs: () => 5_000 }).why()).toBeUndefined();
    expect(await scene('trainer', { progress: { done: 1, total: 10 }, saveMs: () => 15_000 }).why()).toMatch(
      /needs 24.0 s/,
    );
  });

  it('goes by how long such a job took before while there is no progress to go by', async () => {
    expect(await scene('trainer', { usualMs: () => 15_000 }).why()).toBeUndefined();
    expect(await scene('trainer', { usualMs: () => 40_000 }).why()).toMatch(/needs 39.0 s/);
    expect(await scene('trainer').why()).toBeUndefined();
  });

  it('changes its mind when a job gets slower', async () => {
    const progress = { done: 9, total: 10, note: '' };
    const hand = new InHand('reward', { stage: 'reward', runId: 'r' }, progress);
    hand.begin(performance.now() - 9_000);
    const rejected = vi.fn();
    hand.handedBack.catch(rejected);
    void drain(notice, performance.now() + until, {
      hands: () => [hand],
      ended: new Promise(() => {}),
      usualMs: () => undefined,
      saveMs: () => undefined,
      now: () => performance.now(),
    });
    await vi.advanceTimersByTimeAsync(400);
    expect(rejected).not.toHaveBeenCalled();
    progress.total = 100;
    await vi.advanceTimersByTimeAsync(400);
    expect(rejected).toHaveBeenCalledOnce();
  });

  it('hands back at once what has not begun', async () => {
    expect(await scene('reward', { elapsed: -1 }).why()).toBe('handed back: SIGTERM, before it began');
  });

  it('leaves a rollout to write down its samples and hand itself back', async () => {
    expect(await scene('rollout', { progress: { done: 1, total: 1000 } }).why(1_000)).toBeUndefined();
  });

  it('leaves as soon as nothing is in hand', async () => {
    let end = () => {};
    const { done } = scene('trainer', { ended: new Promise<void>((resolve) => (end = resolve)) });
    end();
    await done;
  });

  it('leaves inside its grace whatever becomes of what is in hand', async () => {
    const { done } = scene('trainer');
    await vi.advanceTimersByTimeAsync(notice.graceMs);
    await done;
  });
});
