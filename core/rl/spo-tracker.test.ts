import { describe, expect, test } from 'vitest';
import { raggedRows } from './ragged.ts';
import {
  distancesOfRows,
  promptRate,
  promptSamplingWeight,
  rhoOf,
  startTracker,
  updateTracker,
} from './spo-tracker.ts';

describe('a tracker of a prompt', () => {
  test('starts at one half without scores, and near the share of successes with them', () => {
    expect(startTracker([1, 1], 0, 0.9)).toEqual({ alpha: 0.5, beta: 0.5 });
    const tracker = startTracker([1, 0, -1, 0.2, 1, 1], 4, 0.75);
    expect(promptRate(tracker)).toBeCloseTo(0.5, 12);
    expect(tracker.alpha + tracker.beta).toBeCloseTo(4, 12);
  });

  test('with a constant score approaches it, and forgets faster with a smaller rho', () => {
    let [slow, fast] = [startTracker([], 0, 0), startTracker([], 0, 0)];
    for (let i = 0; i < 5; i++) [slow, fast] = [updateTracker(slow, 1, 1), updateTracker(fast, 1, 0.5)];
    expect(promptRate(slow)).toBeCloseTo(5.5 / 6, 12);
    expect(promptRate(fast)).toBeGreaterThan(promptRate(slow));
  });

  test('draws prompts that are neither always solved nor never more often', () => {
    const weight = (alpha: number) => promptSamplingWeight({ alpha, beta: 1 - alpha });
    expect(weight(0.5)).toBeCloseTo(0.55, 12);
    expect([weight(0), weight(1)]).toEqual([0.05, 0.05]);
    expect(promptSamplingWeight({ alpha: 1, beta: 0 }, 0)).toBe(0);
  });

  test('refuses a lowest rho outside [0, 1)', () => {
    expect(() => startTracker([1], 1, 1)).toThrow(/less than 1, got 1/);
    expect(() => startTracker([1], 1, NaN)).toThrow(/lowest rho/);
  });
});

test('rho halves with the distance between the policies, within its bounds, over valid tokens', () => {
  const rows = raggedRows([2, 1, 1, 1], [1, 0, 1, 1, 0]);
  const distances = distancesOfRows([-1, NaN, -1, -1, -1], [-1.12, NaN, -1, -9, -5], rows);
  const rho = distances.map((distance) => rhoOf(distance, { lowest: 0.1, highest: 0.9 }));
  expect([...rho]).toEqual([expect.closeTo(0.25, 6), 0.9, 0.1, 0.9]);
  expect(() => distancesOfRows([1], [1], rows)).toThrow(/old log-probs has 1 values for 5 tokens/);
});
