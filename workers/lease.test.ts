import { describe, expect, it } from 'vitest';
import { TrainerLease } from './lease.ts';
import type { LeasePorts } from './lease.ts';

const hour = 3_600_000;
const job = async () => {};
const run = (runId: string) => ({ runId, store: 'file:///store' });

function leaseUnderTest(ports: Partial<LeasePorts> = {}) {
  let nowMs = 0;
  const seen: { freed: string[]; changes: number; lines: string[] } = { freed: [], changes: 0, lines: [] };
  const lease = new TrainerLease(
    {
      changed: () => (seen.changes += 1),
      freed: (runId) => seen.freed.push(runId),
      partFreed: (runId, components) => seen.freed.push(`${runId}: ${components.join(' ')}`),
      isActive: async () => true,
      log: (line) => seen.lines.push(line),
      ...ports,
    },
    { askEveryMs: 0, waiterMs: 1_000 },
    () => nowMs,
  );
  return { lease, seen, pass: (ms: number) => void (nowMs += ms) };
}

/** Lets answers of `isActive` arrive. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the lease of a trainer', () => {
  it('stays with its run while the run is active, however long it sends no job', async () => {
    const { lease, seen, pass } = leaseUnderTest();
    await lease.use(run('a'), job);
    for (let i = 0; i < 24; i++) {
      pass(hour);
      expect(lease.refuse(run('b'))).toBe('the trainer is busy with a');
      await turn();
    }
    expect([lease.runId, seen.freed]).toEqual(['a', []]);
  });

  it('ends when another run waits and the store says that its run is not active', async () => {
    let active = true;
    const { lease, seen } = leaseUnderTest({ isActive: async () => active });
    await lease.use(run('a'), job);
    active = false;
    expect(lease.refuse(run('b'))).toBe('the trainer is busy with a');
    await turn();
    expect(seen.freed).toEqual(['a']);
    expect(lease.refuse(run('b'))).toBeUndefined();
  });

  it('stays while the store cannot be read, and while a job is in flight', async () => {
    const { lease, seen } = leaseUnderTest({ isActive: () => Promise.reject(new Error('no answer')) });
    await lease.use(run('a'), job);
    lease.refuse(run('b'));
    await turn();
    expect([lease.runId, seen.lines]).toEqual(['a', ['a keeps the trainer: Error: no answer']]);

    const busy = leaseUnderTest({ isActive: async () => false });
    await busy.lease.use(run('a'), async () => {
      busy.lease.refuse(run('b'));
      await turn();
      expect(busy.lease.runId).toBe('a');
    });
  });

  it('goes to the waiting runs in the order of their first request', async () => {
    const { lease, pass } = leaseUnderTest();
    await lease.use(run('a'), job);
    for (const waiting of ['b', 'c', 'd', 'b']) lease.refuse(run(waiting));
    lease.release('a');
    expect(lease.refuse(run('c'))).toBe('the trainer goes to b next');
    expect(lease.refuse(run('b'))).toBeUndefined();
    await lease.use(run('b'), job);
    lease.refuse(run('c'));
    lease.release('c'); // it was cancelled
    lease.release('b');
    pass(500);
    expect(lease.refuse(run('e'))).toBe('the trainer goes to d next');
    pass(501); // d has stopped asking
    expect(lease.refuse(run('e'))).toBeUndefined();
  });

  it('is taken by the first of two runs that may start', async () => {
    const { lease } = leaseUnderTest();
    await lease.use(run('a'), job);
    for (const waiting of ['b', 'c']) lease.refuse(run(waiting));
    lease.release('a');
    // B has not claimed its job yet.
    expect([lease.refuse(run('b')), lease.refuse(run('c'))]).toEqual([undefined, undefined]);
    await lease.use(run('b'), job);
    await expect(lease.use(run('c'), job)).rejects.toMatchObject({ code: 'TrainerLeased' });
    expect(lease.runId).toBe('b');
  });

  it('is not blocked by a run whose turn came and whose job is not claimed', () => {
    const { lease } = leaseUnderTest();
    expect(lease.refuse(run('a'))).toBeUndefined();
    expect(lease.refuse(run('b'))).toBeUndefined();
  });

  it('is released by its holder only', async () => {
    const { lease, seen } = leaseUnderTest();
    await lease.use(run('a'), job);
    lease.release('b');
    expect(lease.runId).toBe('a');
    lease.release('a');
    expect([lease.runId, seen.freed]).toEqual([undefined, ['a']]);
  });

  it('reports its changes, and ends when another trainer works for the run, unless a job is in flight', async () => {
    const { lease, seen } = leaseUnderTest();
    await lease.use(run('a'), async () => {
      lease.trainedElsewhere('a');
      expect([lease.runId, seen.changes]).toEqual(['a', 1]);
    });
    await lease.use(run('a'), job);
    expect(seen.changes).toBe(1);
    lease.trainedElsewhere('a');
    expect([lease.runId, seen.changes]).toEqual([undefined, 2]);
  });

  it('is for the parts of a run that is divided whose jobs it has run', async () => {
    const { lease, seen } = leaseUnderTest();
    const part = (...components: string[]) => ({ ...run('a'), components });
    await lease.use(part('actor', 'logZ'), job);
    expect([lease.components, lease.has(part('actor', 'logZ')), lease.has(part('critic'))]).toEqual([
      ['actor', 'logZ'],
      true,
      false,
    ]);
    const second = () => [part('actor', 'logZ'), part('critic'), run('b')].map((one) => lease.isSecond(one));
    expect(second()).toEqual([false, true, false]);
    expect(lease.refuse(run('a'))).toBeUndefined();
    await lease.use(part('critic'), job);
    expect([lease.components, seen.changes]).toEqual([['actor', 'logZ', 'critic'], 2]);
    expect(second()).toEqual([false, true, false]);
    lease.trainedElsewhere('a', ['rewardModel']);
    expect([lease.has(part('critic')), seen.changes]).toEqual([true, 2]);
    await lease.use(part('critic'), async () => lease.trainedElsewhere('a', ['critic']));
    expect(lease.has(part('critic'))).toBe(true); // its job is in flight
    lease.trainedElsewhere('a', ['critic']);
    expect([lease.runId, lease.components, seen.freed, seen.changes]).toEqual([
      'a',
      ['actor', 'logZ'],
      ['a: critic'],
      3,
    ]);
    lease.trainedElsewhere('a', ['actor', 'logZ']);
    expect([lease.runId, lease.components, seen.freed]).toEqual([undefined, undefined, ['a: critic', 'a']]);
  });

  describe('as a standby', () => {
    const follower = (runId: string) => ({ ...run(runId), standby: true }) as const;

    it('follows its run until it leads it', async () => {
      const { lease, seen } = leaseUnderTest();
      await lease.use(follower('a'), job);
      expect([lease.runId, lease.standsBy, lease.has(follower('a')), lease.has(run('a'))]).toEqual([
        'a',
        true,
        true,
        false,
      ]);
      expect(lease.refuse(run('a'))).toBeUndefined();
      await lease.use(run('a'), job);
      expect([lease.standsBy, lease.has(run('a')), seen.changes, seen.freed]).toEqual([false, true, 2, []]);
    });

    it('gives way to another run, except during a job and to another standby', async () => {
      const { lease, seen } = leaseUnderTest();
      await lease.use(follower('a'), async () => {
        expect(lease.refuse(run('b'))).toBe('the trainer is busy with a');
      });
      expect(seen.freed).toEqual(['a']); // once the job had ended
      await lease.use(follower('a'), job);
      expect(lease.refuse(follower('c'))).toBe('the trainer is busy with a');
      expect(lease.refuse(run('b'))).toBeUndefined();
      expect([lease.runId, seen.freed]).toEqual([undefined, ['a', 'a']]);
    });

    it('comes after every run that waits, and holds none of them up', async () => {
      const { lease } = leaseUnderTest();
      await lease.use(run('a'), job);
      lease.refuse(follower('b'));
      lease.refuse(run('c'));
      lease.release('a');
      expect(lease.refuse(follower('b'))).toBe('the trainer goes to c next');
      expect(lease.refuse(run('c'))).toBeUndefined();
    });
  });

  it('released while a job is in flight, ends with the job unless the run sends another one', async () => {
    const { lease, seen } = leaseUnderTest();
    await lease.use(run('a'), async () => lease.release('a'));
    expect(seen.freed).toEqual(['a']);
    await lease.use(run('a'), async () => {
      lease.release('a');
      await lease.use(run('a'), job);
    });
    expect([lease.runId, seen.freed]).toEqual(['a', ['a']]);
  });
});
