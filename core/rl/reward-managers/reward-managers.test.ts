import { describe, expect, test } from 'vitest';
import { dapoRewards } from './dapo.ts';
import { gdpoRewards } from './gdpo.ts';
import { naiveRewards } from './naive.ts';

describe('columns', () => {
  test('of results with and without them keep every sample at its place', () => {
    const { rewards_S, columns } = naiveRewards([1, { score: -1, acc: false, pred: 'x' }]);
    expect([...rewards_S]).toEqual([1, -1]);
    expect(columns).toEqual({ score: [null, -1], acc: [null, false], pred: [null, 'x'] });
    expect(naiveRewards([])).toEqual({ rewards_S: new Float64Array(0), columns: {} });
  });

  test('of DAPO have the score as acc when it is alone', () => {
    expect(dapoRewards([1, 0], [3, 9], {}).columns).toEqual({ acc: [1, 0] });
    const overlong = { limit: 10, buffer: 4, factor: 1 };
    const { rewards_S, columns } = dapoRewards([{ score: 1, acc: true }, 0], [3, 9], { overlong });
    expect([...rewards_S]).toEqual([1, -0.75]);
    expect(columns).toMatchObject({ acc: [true, 0], overlong: [false, true] });
  });

  test('refuse a score that is no finite number', () => {
    expect(() => naiveRewards([1, NaN])).toThrow(/sample 1: expected a finite score, got NaN/);
    expect(() => dapoRewards([Infinity], [1], {})).toThrow(/sample 0/);
  });
});

describe('GDPO', () => {
  test('gives each component its values and metrics', () => {
    const { components, metrics } = gdpoRewards(
      [
        { score: 2, format: 1, right: true },
        { score: 0, format: 0, right: false },
      ],
      ['format', 'right'],
    );
    expect(Object.fromEntries(Object.entries(components).map(([key, values]) => [key, [...values]]))).toEqual({
      format: [1, 0],
      right: [1, 0],
    });
    expect(metrics).toMatchObject({ 'gdpo/format/mean': 0.5, 'gdpo/format/std': 0.5, 'gdpo/right/max': 1 });
  });

  test.each([
    [[{ score: 1, format: 1 }, { score: 1 }], /sample 1 has no component format; the scorer returned score/],
    [[{ score: 1, format: 'yes' }], /sample 0 has no component format, but "yes"/],
    [[0.5], /sample 0 has no component format; the scorer returned a number alone/],
    [[], /there are no samples/],
  ])('refuses %j', (results, message) => {
    expect(() => gdpoRewards(results, ['format'])).toThrow(message);
  });
});
