import { describe, expect, test } from 'vitest';
import { raggedRows } from '../ragged.ts';
import { advantageEstimator } from './index.ts';
import type { AdvantageBatch, SessionOutputs } from './types.ts';

function advantagesOf(name: string, scores: readonly number[], sessions: SessionOutputs, mask?: readonly number[]) {
  const batch: AdvantageBatch = {
    rows: raggedRows(
      scores.map(() => 1),
      mask,
    ),
    rewards_T: scores,
    groups_S: scores.map(() => 'g'),
    sessions,
  };
  return [...advantageEstimator(name).compute(batch, { normAdvByStdInGrpo: false }).advantages_T];
}

describe('sessions with several outputs', () => {
  const sessions = { sessions_S: ['a', 'b', 'a', 'a'], outputs_S: [9, 0, 10, 2] };

  test('enter the group with the output of the highest number, and share its advantage', () => {
    expect(advantagesOf('grpo', [5, 0, 1, 7], sessions)).toEqual([0.5, -0.5, 0.5, 0.5]);
  });

  test('get 0 when their final output has no valid token', () => {
    expect(advantagesOf('grpo', [5, 0, 1, 7], sessions, [1, 1, 0, 1])).toEqual([0, -0.5, 0, 0]);
  });

  test('with one output each are plain samples', () => {
    const plain = { sessions_S: ['a', 'b', 'c', 'd'], outputs_S: [0, 3, 1, 0] };
    expect(advantagesOf('grpo', [4, 0, 4, 0], plain)).toEqual([2, -2, 2, -2]);
  });

  test('are independent samples for other estimators', () => {
    expect(advantagesOf('grpo_vectorized', [4, 0, 4, 0], sessions)).toEqual([2, -2, 2, -2]);
  });
});
