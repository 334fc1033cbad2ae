import { describe, expect, test } from 'vitest';
import { raggedRows } from '../ragged.ts';
import { teacherLoss } from './teacher-loss.ts';
import { forwardKlTopk, topkLoss } from './topk.ts';

const config = { lossAggMode: 'token-mean', totals: {} } as const;

describe('distillation from one log-prob per token', () => {
  const input = {
    rows: raggedRows([3], [1, 0, 1]),
    logProb_T: [-1, NaN, -2],
    oldLogProb_T: [-1, -1, -2],
    teacherLogProb_T: [-1.5, -1, -0.5],
  };

  test('ignores what is outside the mask', () => {
    const { loss, dLogProb_T, metrics } = teacherLoss(input, { ...config, lossMode: 'k2', usePolicyGradient: false });
    expect(loss).toBeCloseTo((0.125 + 1.125) / 2, 12);
    expect([...dLogProb_T]).toEqual([0.25, 0, -0.75]);
    expect(metrics['distillation/loss_max']).toBe(1.125);
  });

  test('as a policy gradient raises tokens that the teacher finds likelier, and reports under its own names', () => {
    const { dLogProb_T, metrics } = teacherLoss(input, { ...config, lossMode: 'k1', usePolicyGradient: true });
    expect(dLogProb_T[0]).toBeGreaterThan(0);
    expect(dLogProb_T[2]).toBeLessThan(0);
    expect(metrics).toHaveProperty('distillation/pg_clipfrac');
    expect(metrics).not.toHaveProperty('actor/pg_clipfrac');
  });

  test('refuses k1 as a supervised loss, unknown estimators, and arrays of another length', () => {
    const supervised = { ...config, usePolicyGradient: false };
    expect(() => teacherLoss(input, { ...supervised, lossMode: 'k1' })).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('use_policy_gradient') }),
    );
    expect(() => teacherLoss(input, { ...supervised, lossMode: 'k9' })).toThrow(/unknown KL estimator/);
    expect(() => teacherLoss({ ...input, teacherLogProb_T: [-1] }, { ...supervised, lossMode: 'k2' })).toThrow(
      /teacher log-probs has 1 values for 3 tokens/,
    );
  });
});

describe('distillation over the top k', () => {
  test('of equal distributions is 0', () => {
    const logProbs = [-0.5, -1.2, -0.3, -2];
    const { kl_T } = forwardKlTopk({ k: 2, studentLogProb_TK: logProbs, teacherLogProb_TK: logProbs }, -10);
    expect([...kl_T]).toEqual([0, 0]);
  });

  test('has no gradient where the sum is negative, and none below the clamp', () => {
    const negative = forwardKlTopk({ k: 1, studentLogProb_TK: [-0.1], teacherLogProb_TK: [-2] });
    expect(negative.kl_T[0]).toBeLessThan(0);
    expect(negative.dLogProb_TK[0]).toBe(0);
    const below = forwardKlTopk({ k: 2, studentLogProb_TK: [-20, -1], teacherLogProb_TK: [-0.5, -1] }, -10);
    expect([...below.dLogProb_TK]).toEqual([0, -Math.exp(-1)]);
    expect(below.studentMass_T[0]).toBeCloseTo(Math.exp(-20) + Math.exp(-1), 14);
  });

  test('reports masses and the overlap of both top k, over valid tokens', () => {
    const rows = raggedRows([2], [1, 0]);
    const { metrics } = topkLoss(
      rows,
      {
        k: 2,
        studentLogProb_TK: [-1, -1, -3, -3],
        teacherLogProb_TK: [-0.5, -2, -0.5, -2],
        overlap_TK: [1, 0, 1, 1],
      },
      config,
    );
    expect(metrics['distillation/student_mass']).toBeCloseTo(2 * Math.exp(-1), 12);
    expect(metrics['distillation/overlap_ratio']).toBe(0.5);
    expect(metrics['distillation/overlap_token_advantage']).toBeCloseTo(-Math.exp(-0.5) * 0.5, 12);
  });

  test('over nothing valid is NaN with NaN metrics, and 0 with totals', () => {
    const rows = raggedRows([1], [0]);
    const input = { k: 1, studentLogProb_TK: [-1], teacherLogProb_TK: [-0.5] };
    expect(topkLoss(rows, input, config).loss).toBeNaN();
    expect(topkLoss(rows, input, { ...config, totals: { batchNumTokens: 4 } }).loss).toBe(0);
  });

  test('refuses arrays that do not have k values for each position', () => {
    const input = { k: 2, studentLogProb_TK: [-1, -1, -1], teacherLogProb_TK: [-1, -1, -1] };
    expect(() => forwardKlTopk(input)).toThrow(/2 values for each position/);
    expect(() => forwardKlTopk({ ...input, k: 0 })).toThrow(/k of at least 1/);
    expect(() => topkLoss(raggedRows([1]), { ...input, k: 1 }, config)).toThrow(/3 values for 1 tokens/);
  });
});
