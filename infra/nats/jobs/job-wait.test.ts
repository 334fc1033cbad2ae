import { describe, expect, it } from 'vitest';
import { timings, wireVersion } from '../../../core/wire/messages.ts';
import type { JobEvent } from '../../../core/wire/messages.ts';
import { JobWait } from './job-wait.ts';

const timing = timings.loopback;
/** A claim by a process whose predecessor of the same name crashed, unless `ended` says otherwise. */
const claim = (worker: string, incarnation = worker, predecessorEnded = 'SIGSEGV') =>
  ({ v: wireVersion, jobId: 'j', worker, incarnation, predecessorEnded }) as const;
/** Events with their sender. */
const progress = (worker: string): [JobEvent, string] => [
  { v: wireVersion, type: 'progress', done: 1, total: 2, note: '' },
  worker,
];
const failed = (kind: Extract<JobEvent, { type: 'failed' }>['kind']): [JobEvent, string] => [
  { v: wireVersion, type: 'failed', incarnation: 'i', proof: 'p', kind, error: { code: 'X', message: 'it broke' } },
  'a',
];

describe('a job that is waited for', () => {
  it('goes to the first worker that claims it, and stays with it while that worker shows signs of life', () => {
    const wait = new JobWait('j', timing);
    expect(wait.claim(claim('a'), 0)).toMatchObject({ answer: 'go', alone: false });
    expect(wait.claim(claim('b'), timing.ackWaitMs - 1)).toMatchObject({ answer: 'held' });
    expect(wait.holder).toBe('a');
    wait.event(...progress('a'), timing.ackWaitMs - 1);
    expect(wait.claim(claim('b'), timing.ackWaitMs + 1)).toMatchObject({ answer: 'held' });
  });

  it('goes to another worker, and runs alone there, when its holder falls silent', () => {
    const wait = new JobWait('j', timing);
    wait.claim(claim('a'), 0);
    expect(wait.claim(claim('b'), timing.ackWaitMs + 1)).toMatchObject({ answer: 'go', alone: true });
  });

  it('can be claimed as soon as another process replaces its holder, and then runs alone', () => {
    const wait = new JobWait('j', timing);
    wait.claim(claim('a', 'first'), 0);
    expect([wait.replaced('b', 'other'), wait.replaced('a', 'first')]).toEqual([false, false]);
    expect(wait.claim(claim('b'), 1)).toMatchObject({ answer: 'held' });
    expect(wait.replaced('a', 'second')).toBe(true);
    expect(wait.claim(claim('b'), 1)).toMatchObject({ answer: 'go', alone: true });
  });

  it('can be claimed as soon as the connection of its holder closes; the closed connection of another process frees nothing', () => {
    const wait = new JobWait('j', timing);
    wait.claim(claim('a', 'first'), 0);
    expect([wait.lost('a', 'earlier'), wait.lost('b', 'first')]).toEqual([false, false]);
    expect(wait.claim(claim('b'), 1)).toMatchObject({ answer: 'held' });
    expect(wait.lost('a', 'first')).toBe(true);
    expect(wait.claim(claim('b'), 1)).toMatchObject({ answer: 'go', alone: true });
  });

  it('stays with its holder after an outage of the connection, unless the holder was replaced', () => {
    const wait = new JobWait('j', timing);
    const back = 3 * timing.ackWaitMs;
    wait.claim(claim('a'), 0);
    wait.reconnected(back);
    expect(wait.claim(claim('b'), back + 1)).toMatchObject({ answer: 'held' });
    wait.replaced('a', 'second');
    wait.reconnected(back + 2);
    expect(wait.claim(claim('b'), back + 3)).toMatchObject({ answer: 'go' });
  });

  it('ignores a failure of a worker that lost the job to its present holder', () => {
    const wait = new JobWait('j', timing);
    wait.claim(claim('a'), 0);
    const later = timing.ackWaitMs + 1;
    wait.claim(claim('b'), later);
    for (const kind of ['preempted', 'retryable', 'unfit', 'unknown', 'pause', 'terminal'] as const)
      expect(wait.event(...failed(kind), later)).toEqual({ type: 'wait' });
    expect(wait.claim(claim('c'), later + 1)).toMatchObject({ answer: 'held' });
    expect(wait.holder).toBe('b');
    expect(wait.event(...failed('preempted'), 2 * later)).toMatchObject({ type: 'publish' });
  });

  it('stays with its holder when another worker refuses it, and shows a reason only while it has no holder', () => {
    const wait = new JobWait('j', timing);
    const refused = (worker: string): [JobEvent, string] => [
      { v: wireVersion, type: 'queued', because: `${worker} is leased` },
      worker,
    ];
    wait.event(...refused('b'), 0);
    expect([wait.holder, wait.queuedBecause]).toEqual([undefined, 'b is leased']);
    wait.claim(claim('a'), 0);
    wait.event(...refused('b'), 1);
    expect([wait.holder, wait.queuedBecause]).toEqual(['a', undefined]);
  });

  it('is poison after crashing two workers while it ran alone, and not before', () => {
    const wait = new JobWait('j', timing);
    const later = (n: number) => n * (timing.ackWaitMs + 1);
    wait.claim(claim('a', 'a1'), later(0));
    expect(wait.claim(claim('a', 'a2'), later(1)).answer).toBe('go');
    expect(wait.claim(claim('a', 'a3'), later(2)).answer).toBe('go');
    expect(wait.poison).toBeUndefined();
    expect(wait.claim(claim('a', 'a4'), later(3)).answer).toBe('drop');
    expect(wait.poison).toMatchObject({ kind: 'pause', code: 'JobConvicted' });
  });

  it.each(['SIGKILL', undefined])(
    'is not poison after kills from outside (%s), but is not retried for ever',
    (ended) => {
      const wait = new JobWait('j', timing);
      const answers = Array.from({ length: 10 }, (_, n) => {
        if (ended === undefined) return wait.claim(claim(`w${n}`), n * (timing.ackWaitMs + 1)).answer;
        return wait.claim(claim('a', `a${n}`, ended), n).answer;
      });
      expect(answers).toEqual([...new Array<string>(9).fill('go'), 'drop']);
    },
  );

  it('costs nothing when its worker was preempted, however often', () => {
    const wait = new JobWait('j', timing);
    for (let i = 0; i < 50; i++) expect(wait.event(...failed('preempted'), i)).toEqual({ type: 'publish', delayMs: 0 });
  });

  it('costs nothing when its worker is unfit, however often, and names the worker and the reason', () => {
    const wait = new JobWait('j', timing);
    for (let i = 0; i < 50; i++) expect(wait.event(...failed('unfit'), i)).toEqual({ type: 'publish', delayMs: 0 });
    expect(wait.queuedBecause).toMatch(/^a cannot run it: /);
  });

  it('pauses the run at the third unknown failure and gives up at once on a terminal one', () => {
    const wait = new JobWait('j', timing);
    expect(wait.event(...failed('unknown'), 0).type).toBe('publish');
    expect(wait.event(...failed('unknown'), 0).type).toBe('publish');
    expect(wait.event(...failed('unknown'), 0)).toMatchObject({
      type: 'give-up',
      error: { kind: 'pause', code: 'JobFailed' },
    });
    expect(new JobWait('j', timing).event(...failed('terminal'), 0)).toMatchObject({
      type: 'give-up',
      error: { kind: 'terminal', code: 'X' },
    });
  });

  it('does not give up when only one worker fails it while others could run it, and those go first', () => {
    let others = true;
    const wait = new JobWait('j', timing, { others: (than) => others && than.has('a') });
    wait.claim(claim('a'), 0);
    for (let i = 0; i < 6; i++) expect(wait.event(...failed('unknown'), 10)).toMatchObject({ type: 'publish' });
    expect(wait.claim(claim('a'), 11).answer).toBe('held');
    expect(wait.claim(claim('b'), 12).answer).toBe('go');
    others = false;
    expect(wait.claim(claim('a'), 12 + 2 * timing.ackWaitMs).answer).toBe('go');
    expect(wait.event(...failed('unknown'), 13)).toMatchObject({ type: 'give-up', error: { code: 'JobFailed' } });
  });

  it('that can be split is poison after its first crash alone; its parts run alone from the start', () => {
    const whole = new JobWait('j', timing, { divisible: true });
    const later = (n: number) => n * (timing.ackWaitMs + 1);
    whole.claim(claim('a', 'a1'), later(0));
    expect(whole.claim(claim('a', 'a2'), later(1))).toMatchObject({ answer: 'go', alone: true });
    expect(whole.claim(claim('a', 'a3'), later(2)).answer).toBe('drop');
    const part = new JobWait('k', timing, { quarantined: true });
    expect(part.claim(claim('a', 'a1'), 0)).toMatchObject({ answer: 'go', alone: true });
  });

  it('waits longer after each retryable failure, up to five seconds', () => {
    const wait = new JobWait('j', timing);
    const delays = Array.from({ length: 12 }, () => wait.event(...failed('retryable'), 0)).map((verdict) =>
      verdict.type === 'publish' ? verdict.delayMs : -1,
    );
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    expect(delays.at(-1)).toBe(5_000);
  });
});
