import { describe, expect, it, vi } from 'vitest';
import { UnfitError } from '../core/errors.ts';
import { Fitness } from './fitness.ts';

const timing = { firstPauseMs: 1, longestPauseMs: 4 };
const missing = new UnfitError('MissingSecret', 'no variable KEY');

/** A need that is unmet until `fix` is called; counts its checks. */
function fixable(general = false) {
  let lacking = true;
  const check = vi.fn(async () => {
    if (lacking) throw missing;
  });
  return { need: { name: 'the variable KEY', general, check }, check, fix: () => void (lacking = false) };
}

describe('an unmet need of a worker', () => {
  it('is announced with its reason, and not checked again for every job', async () => {
    const changed = vi.fn();
    const fitness = new Fitness(changed, { firstPauseMs: 10_000, longestPauseMs: 10_000 });
    const { need, check } = fixable();
    expect(await fitness.firstLack([need])).toBe(missing);
    expect(await fitness.firstLack([need])).toBe(missing);
    expect(check).toHaveBeenCalledTimes(1);
    expect(changed).toHaveBeenCalledTimes(1);
    expect(fitness.lacks).toEqual([
      { what: 'the variable KEY', error: { code: 'MissingSecret', message: 'no variable KEY' } },
    ]);
    expect(fitness.takesJobs).toBe(true);
  });

  it('is checked again by itself until it is met', async () => {
    const changed = vi.fn();
    const fitness = new Fitness(changed, timing);
    const { need, check, fix } = fixable();
    await fitness.firstLack([need]);
    await expect.poll(() => check.mock.calls.length).toBeGreaterThan(3);
    fix();
    await expect.poll(() => fitness.lacks).toEqual([]);
    expect(changed).toHaveBeenCalledTimes(2);
    expect(await fitness.firstLack([need])).toBeUndefined();
  });

  it('makes the worker refuse every job when every job needs it', async () => {
    const fitness = new Fitness(() => {}, timing);
    const { need, fix } = fixable(true);
    await fitness.firstLack([need]);
    expect(fitness.takesJobs).toBe(false);
    const fit = fitness.whenFit();
    fix();
    await fit;
    expect(fitness.takesJobs).toBe(true);
  });

  it('is checked less and less often while its check passes and jobs still fail, until a job succeeds', async () => {
    vi.useFakeTimers();
    try {
      const fitness = new Fitness(() => {}, { firstPauseMs: 10, longestPauseMs: 40 });
      const need = { name: 'the store', check: async () => {} };
      const pauses: number[] = [];
      const miss = async () => {
        fitness.note(need, missing);
        let waited = 0;
        for (; fitness.lacks.length > 0; waited += 10) await vi.advanceTimersByTimeAsync(10);
        pauses.push(waited);
      };
      for (let i = 0; i < 4; i++) await miss();
      fitness.proven([need]);
      await miss();
      expect(pauses).toEqual([10, 20, 40, 40, 10]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is ignored when its check fails for another reason, which the job itself will report', async () => {
    const fitness = new Fitness(() => {}, timing);
    const need = { name: 'the store', check: () => Promise.reject(new Error('timeout')) };
    expect(await fitness.firstLack([need])).toBeUndefined();
    expect(fitness.lacks).toEqual([]);
  });
});
