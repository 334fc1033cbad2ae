import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plot, sparkline } from './plot.ts';
import { displayWidth } from './width.ts';

const points = (...values: readonly number[]) => values.map((y, i) => ({ x: i + 1, y }));

describe('a plot', () => {
  it('shows the range on the left and the first and last iteration below', () => {
    expect(plot('critic/score/mean', points(0, 0.5, 1), { columns: 12, rows: 2 }).split('\n')).toEqual([
      'critic/score/mean',
      '1 ┤   ▁▁▁███',
      '0 ┤▁▁▁██████',
      '  └─────────',
      '   1       3',
    ]);
  });

  it('of one value, or of equal ones, is flat', () => {
    expect(plot('x', points(2), { columns: 20, rows: 1 }).split('\n')).toEqual(['x', '2 ┤▄▄▄▄', '  └────', '   1']);
    expect(plot('x', points(2, 2), { columns: 5, rows: 1 }).split('\n')[1]).toBe('2 ┤▄▄');
  });

  it('leaves a gap where a value is not finite, and says when there is none at all', () => {
    expect(plot('x', points(0, Number.NaN, 1), { columns: 6, rows: 1 }).split('\n')[1]).toBe('1 ┤▁ █');
    expect(plot('x', points(Number.NaN), { columns: 40 })).toContain('no numbers');
  });

  it('is never wider than the terminal', () => {
    const value = fc.oneof(fc.double({ min: -1e9, max: 1e9, noNaN: true }), fc.constant(Number.NaN));
    const values = fc.array(value, { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(values, fc.integer({ min: 40, max: 200 }), (ys, columns) => {
        for (const line of plot('title', points(...ys), { columns }).split('\n'))
          expect(displayWidth(line)).toBeLessThanOrEqual(columns);
      }),
    );
  });
});

describe('a sparkline', () => {
  it('goes from the lowest to the highest of the newest values', () => {
    expect(sparkline([9, 0, 1, 2, 3, 4, 5, 6, 7], 8)).toBe('▁▂▃▄▅▆▇█');
    expect(sparkline([1, 1], 8)).toBe('▄▄');
    expect(sparkline([], 8)).toBe('');
  });
});
