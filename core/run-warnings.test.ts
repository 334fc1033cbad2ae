import { describe, expect, it } from 'vitest';
import { warningsOf, warningText } from './run-warnings.ts';
import type { WarnedIteration } from './run-warnings.ts';

type Metrics = WarnedIteration['metrics'];

/** Iterations 1, 2, … of a run that learns; `change` says what is different in one. */
function run(count: number, change: (k: number) => Metrics = () => ({})): WarnedIteration[] {
  return Array.from({ length: count }, (_, i) => ({
    iteration: i + 1,
    metrics: {
      'critic/score/mean': 0.3 + 0.5 * (i / count) + 0.05 * (i % 2),
      'critic/advantages/max': 1,
      'critic/advantages/min': -1,
      'training/groups_without_signal': 0.4,
      'response_length/clip_ratio': 0.1,
      'actor/grad_norm': 1 + (i % 3),
      'actor/kl_loss': 0.01 * i,
      ...change(i + 1),
    },
  }));
}
const codes = (rows: readonly WarnedIteration[]) => warningsOf(rows).map(({ code }) => code);

describe('a run that learns', () => {
  it('gets no warning, whatever its length', () => {
    for (const count of [0, 1, 2, 5, 40, 200]) expect(warningsOf(run(count))).toEqual([]);
  });

  it('gets none for two iterations of chance, or for what is over', () => {
    expect(codes(run(20, (k) => (k > 18 ? { 'training/groups_without_signal': 1 } : {})))).toEqual([]);
    expect(codes(run(20, (k) => (k < 10 ? { 'response_length/clip_ratio': 0.9 } : {})))).toEqual([]);
    expect(codes(run(90, (k) => (k === 3 ? { 'actor/grad_norm': 'NaN' } : {})))).toEqual([]);
  });

  it('gets none for a reward that is seldom above zero', () => {
    expect(codes(run(30, (k) => ({ 'critic/score/mean': k === 7 || k === 16 ? 0.02 : 0 })))).toEqual([]);
  });
});

describe('no learning signal', () => {
  it('is seen when each group has one reward, and says which', () => {
    const rows = run(9, (k) => (k > 5 ? { 'training/groups_without_signal': 1, 'critic/score/mean': 0 } : {}));
    const [warning] = warningsOf(rows);
    expect(warning).toMatchObject({ code: 'NoLearningSignal', iterations: [6, 9] });
    expect(warning && warningText(warning, 'toy-1')).toMatch(
      /^warning: no learning signal: .* every reward was 0, in iterations 6 to 9\. .*petrel samples toy-1/,
    );
  });

  it('names the learning rate when the reward was higher before, and the scorer when it never was', () => {
    const dead = { 'training/groups_without_signal': 1, 'critic/score/mean': 0 };
    const adviceOf = (rows: readonly WarnedIteration[]) => warningsOf(rows)[0]?.advice;
    expect(adviceOf(run(9, (k) => (k > 1 ? dead : {})))).toMatch(/reached 0\.3: actor\.optim\.lr/);
    expect(adviceOf(run(9, () => dead))).toContain('scorer');
  });

  it('is seen by advantages that are all zero, in records that do not count groups', () => {
    const none = { 'critic/advantages/max': 0, 'critic/advantages/min': 0, 'training/groups_without_signal': 'NaN' };
    expect(codes(run(3, () => none))).toEqual(['NoLearningSignal']);
  });
});

describe('other warnings', () => {
  it('come when most responses are cut', () => {
    const [warning] = warningsOf(run(12, (k) => (k > 8 ? { 'response_length/clip_ratio': 0.94 } : {})));
    expect(warning).toMatchObject({ code: 'ResponsesCut', iterations: [9, 12] });
    expect(warning?.seen).toContain('94 %');
  });

  it('come when the reward fell to its lowest and stayed', () => {
    const fallen = run(20, (k) => (k > 12 ? { 'critic/score/mean': 0.001 * (k % 2) } : {}));
    expect(warningsOf(fallen)).toMatchObject([{ code: 'RewardCollapsed', iterations: [13, 20] }]);
    expect(codes(run(20, (k) => (k > 17 ? { 'critic/score/mean': 0 } : {})))).toEqual([]);
  });

  it('come when the gradient is not finite, or a hundred times the usual one', () => {
    expect(warningsOf(run(2, (k) => (k === 2 ? { 'actor/grad_norm': 'NaN' } : {})))).toMatchObject([
      { code: 'GradientExploding', iterations: [2, 2] },
    ]);
    const [warning] = warningsOf(run(20, (k) => (k === 11 ? { 'actor/grad_norm': 250 } : {})));
    expect(warning?.seen).toContain('250, 2 is usual');
    expect(codes(run(20, (k) => (k === 11 ? { 'actor/grad_norm': 150 } : {})))).toEqual([]);
  });

  it('come when the policy is far from its reference, or the distance is no number', () => {
    expect(codes(run(9, (k) => (k > 6 ? { 'actor/kl_loss': 7.5 } : {})))).toEqual(['FarFromReference']);
    expect(codes(run(9, (k) => (k > 6 ? { 'actor/kl_loss': 'Infinity' } : {})))).toEqual(['FarFromReference']);
  });
});
