import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReachChoice } from './reach-choice.ts';
import { limitsAmong } from './run-reach.ts';

const far = Number.POSITIVE_INFINITY;
const tokens = 1_000;

/** Plays iterations whose seconds by limit are given, and gives the limits that were chosen. */
function play(choice: ReachChoice, count: number, seconds: (limit: number, i: number) => number, limits = [10, far]) {
  return Array.from({ length: count }, (_, i) => {
    const limit = choice.next(limits);
    choice.ended({ limit, seconds: seconds(limit, i), tokens });
    return limit;
  });
}
const share = (chosen: readonly number[], limit: number) =>
  chosen.filter((one) => one === limit).length / chosen.length;

describe('who takes part', () => {
  it('is the near ones at first, then all for one iteration when that takes far longer', () => {
    const chosen = play(new ReachChoice(), 8, (limit) => (limit === far ? 0.8 : 0.25));
    expect(chosen).toEqual([10, 10, far, 10, 10, 10, 10, 10]);
  });

  it('is all when an iteration takes less time with them, after the first one in which they load weights', () => {
    let withAll = 0;
    const chosen = play(new ReachChoice(), 8, (limit) => (limit === 10 ? 10 : withAll++ === 0 ? 14 : 5));
    expect(chosen).toEqual([10, 10, far, far, far, far, far, far]);
  });

  it('changes when the network does', () => {
    const choice = new ReachChoice();
    play(choice, 50, (limit) => (limit === far ? 5 : 10));
    const chosen = play(choice, 50, (limit) => (limit === far ? 30 : 10));
    expect(share(chosen, 10)).toBeGreaterThan(0.8);
  });

  it('goes back to what is left when the far ones have gone', () => {
    const choice = new ReachChoice();
    play(choice, 20, (limit) => (limit === far ? 5 : 10));
    expect(choice.next([10])).toBe(10);
  });

  const cost = fc.double({ min: 0.1, max: 20, noNaN: true });
  it('costs little more than the best choice would have', () => {
    const costs = fc.tuple(cost, cost, cost);
    const noise = fc.array(fc.double({ min: 0.9, max: 1.1, noNaN: true }), { minLength: 7, maxLength: 50 });
    fc.assert(
      fc.property(costs, noise, (all, factors) => {
        const limits = [10, 50, far];
        const of = (limit: number) => all[limits.indexOf(limit)] ?? Number.NaN;
        const seconds = (limit: number, i: number) => of(limit) * (factors[i % factors.length] ?? 1);
        const chosen = play(new ReachChoice(), 300, seconds, limits);
        const spent = chosen.reduce((sum, limit) => sum + of(limit), 0);
        // Each is tried twice at first. After that two rivals cost one in twenty seconds each, or less.
        expect(spent).toBeLessThan(1.2 * 300 * Math.min(...all) + 3 * all.reduce((sum, one) => sum + one, 0));
      }),
    );
  });
});

describe('limits', () => {
  it('differ in whom they take, and the lowest of equal ones counts', () => {
    expect(limitsAmong([0.2, 0.3])).toEqual([10]);
    expect(limitsAmong([0.2, 80])).toEqual([10, far]);
    expect(limitsAmong([20, 80])).toEqual([50, far]);
    expect(limitsAmong([0.2, 20, 80])).toEqual([10, 50, far]);
    expect(limitsAmong([80])).toEqual([far]);
    expect(limitsAmong([])).toEqual([]);
  });
});
