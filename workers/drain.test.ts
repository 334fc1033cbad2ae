import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { drain, InFlightJob } from './drain.ts';
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
  /** Time in ms that the job has been running. */
  readonly elapsed?: number;
}

/** A job in flight on a worker that is told to leave. Says why the job was requeued, if it was. */
function scene(
  role: 'trainer' | 'rollout' | 'reward',
  { progress = { done: 0, total: 0 }, elapsed = 1_000, ...ports }: Scene = {},
) {
  const job = new InFlightJob(
    role,
    { stage: role === 'trainer' ? 'update' : role, runId: 'r', jobId: 'j' },
    { ...progress, note: '' },
  );
  const start = performance.now();
  if (elapsed >= 0) job.begin(start - elapsed);
  let why: string | undefined;
  job.requeued.catch((error: Error) => (why = error.message));
  const done = drain(notice, start + until, {
    inFlight: () => [job],
    ended: new Promise(() => {}),
    usualMs: () => undefined,
    saveMs: () => undefined,
    now: () => performance.now(),
    ...ports,
  });
  return {
    job,
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

  it('requeues unfinished jobs when the time is up', async () => {
    const { why } = scene('trainer');
    expect(await why(18_500)).toBeUndefined();
    expect(await why(1_000)).toBe('requeued: SIGTERM, and the time is up');
  });

  it('requeues an update at once when it would take too long', async () => {
    expect(await scene('trainer', { progress: { done: 1, total: 30 } }).why()).toBe(
      'requeued: SIGTERM: it needs 29.0 s more, and there are 19.0 s',
    );
  });

  it('counts the checkpoint after the update', async () => {
    expect(await scene('trainer', { progress: { done: 1, total: 10 }, saveMs: () => 5_000 }).why()).toBeUndefined();
    expect(await scene('trainer', { progress: { done: 1, total: 10 }, saveMs: () => 15_000 }).why()).toMatch(
      /needs 24.0 s/,
    );
  });

  it('uses the duration of earlier jobs while there is no progress', async () => {
    expect(await scene('trainer', { usualMs: () => 15_000 }).why()).toBeUndefined();
    expect(await scene('trainer', { usualMs: () => 40_000 }).why()).toMatch(/needs 39.0 s/);
    expect(await scene('trainer').why()).toBeUndefined();
  });

  it('requeues a job that becomes slower', async () => {
    const progress = { done: 9, total: 10, note: '' };
    const job = new InFlightJob('reward', { stage: 'reward', runId: 'r', jobId: 'j' }, progress);
    job.begin(performance.now() - 9_000);
    const rejected = vi.fn();
    job.requeued.catch(rejected);
    void drain(notice, performance.now() + until, {
      inFlight: () => [job],
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

  it('requeues at once a job that has not started', async () => {
    expect(await scene('reward', { elapsed: -1 }).why()).toBe('requeued: SIGTERM, before it began');
  });

  it('lets a rollout write its samples to the journal and requeue itself', async () => {
    expect(await scene('rollout', { progress: { done: 1, total: 1000 } }).why(1_000)).toBeUndefined();
  });

  it('leaves as soon as nothing is in flight', async () => {
    let end = () => {};
    const { done } = scene('trainer', { ended: new Promise<void>((resolve) => (end = resolve)) });
    end();
    await done;
  });

  it('leaves within its grace period even when a job does not end', async () => {
    const { done } = scene('trainer');
    await vi.advanceTimersByTimeAsync(notice.graceMs);
    await done;
  });
});
