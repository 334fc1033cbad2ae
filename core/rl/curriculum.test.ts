import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { curriculumAfter, isPassedOver } from './curriculum.ts';
import type { CurriculumState } from './curriculum.ts';
import { drawsPast } from './draws.ts';

const settings = { metric: 'score', solved: 1, unsolved: null, revisit: 2 };
const stateOf = (...rows: [number, number, number][]): CurriculumState =>
  new Map(rows.map(([row, mean, epoch]) => [row, { mean, epoch }]));

describe('a prompt', () => {
  it('is passed over while it is solved, until as many passes have begun', () => {
    const state = stateOf([7, 1, 3]);
    const at = (epoch: number) => isPassedOver({ row: 7, epoch }, state, settings);
    expect([3, 4, 5].map(at)).toEqual([true, true, false]);
  });

  it('is sampled when it is new, or neither solved nor too hard', () => {
    const state = stateOf([7, 0.5, 0], [8, 0, 0]);
    const window = { ...settings, unsolved: 0 };
    const passed = [6, 7, 8].map((row) => isPassedOver({ row, epoch: 0 }, state, window));
    expect(passed).toEqual([false, false, true]);
    expect(isPassedOver({ row: 8, epoch: 0 }, state, settings)).toBe(false);
  });
});

describe('the state', () => {
  it('has the mean of the valid samples of the last group of each row', () => {
    const groups = [
      { row: 1, epoch: 0, values: [1, null, 0] },
      { row: 2, epoch: 0, values: [null] },
      { row: 1, epoch: 1, values: [1, 1, 1] },
    ];
    expect(curriculumAfter(stateOf([2, 0.25, 0]), groups)).toEqual(stateOf([2, 0.25, 0], [1, 1, 1]));
  });
});

describe('a stream of draws', () => {
  it('always has as many as asked for, ascending, and none that is passed over', () => {
    const arbitrary = fc.record({
      rows: fc.integer({ min: 1, max: 12 }),
      seed: fc.nat(),
      cursor: fc.nat(40),
      count: fc.integer({ min: 1, max: 20 }),
      revisit: fc.integer({ min: 1, max: 4 }),
      means: fc.array(fc.constantFrom(0, 0.5, 1), { maxLength: 12 }),
    });
    fc.assert(
      fc.property(arbitrary, ({ rows, seed, cursor, count, revisit, means }) => {
        const state = stateOf(...means.map((mean, row): [number, number, number] => [row, mean, 0]));
        const window = { ...settings, unsolved: 0, revisit };
        const leavesOut = (draw: { row: number; epoch: number }) => isPassedOver(draw, state, window);
        const draws = drawsPast({ rows, seed, shuffle: true }, cursor, count, [], leavesOut);
        expect(draws).toHaveLength(count);
        expect(draws.some((draw) => leavesOut(draw))).toBe(false);
        const numbers = draws.map(({ draw }) => draw);
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        expect(numbers[0]).toBeGreaterThanOrEqual(cursor);
      }),
    );
  });
});
