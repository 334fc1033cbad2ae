import { describe, expect, it } from 'vitest';
import { TrainerLease } from './lease.ts';

const longAgo = Date.now() + 60_000;

describe('the lease of a trainer', () => {
  it('is refused to others while it is fresh, and told by name', async () => {
    const lease = new TrainerLease({ changed: () => {}, freed: () => {} });
    expect(lease.refuse('a', 0)).toBeUndefined();
    await lease.use('a', async () => {
      expect(lease.refuse('a', longAgo)).toBeUndefined();
      expect(lease.refuse('b', longAgo)).toBe('the trainer is leased to a');
    });
    expect(lease.refuse('b', Date.now())).toBe('the trainer is leased to a');
    expect(lease.refuse('b', longAgo)).toBeUndefined();
  });

  it('ends when it is given back, by its holder only', async () => {
    const freed: string[] = [];
    const lease = new TrainerLease({ changed: () => {}, freed: (runId) => freed.push(runId) });
    await lease.use('a', async () => {});
    lease.release('b');
    expect(lease.runId).toBe('a');
    lease.release('a');
    expect([lease.runId, freed]).toEqual([undefined, ['a']]);
  });

  it('is told when it changes, and yields to another trainer of the same run unless it is in use', async () => {
    let changes = 0;
    const lease = new TrainerLease({ changed: () => (changes += 1), freed: () => {} });
    await lease.use('a', async () => {
      lease.yield('a');
      expect([lease.runId, changes]).toEqual(['a', 1]);
    });
    await lease.use('a', async () => {});
    expect(changes).toBe(1);
    lease.yield('a');
    expect([lease.runId, changes]).toEqual([undefined, 2]);
  });

  it('ends with the work in hand when it is given back meanwhile, unless more work comes', async () => {
    const freed: string[] = [];
    const lease = new TrainerLease({ changed: () => {}, freed: (runId) => freed.push(runId) });
    await lease.use('a', async () => lease.release('a'));
    expect(freed).toEqual(['a']);
    await lease.use('a', async () => {
      lease.release('a');
      await lease.use('a', async () => {});
    });
    expect([lease.runId, freed]).toEqual(['a', ['a']]);
  });
});
