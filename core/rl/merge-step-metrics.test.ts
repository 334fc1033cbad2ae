import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeStepMetrics } from './merge-step-metrics.ts';

describe('metrics of several steps', () => {
  it('are merged by the first rule that fits the name', () => {
    const merged = mergeStepMetrics([
      {
        samples: 1,
        metrics: { 'actor/lr': 1, critic_LR: 1, 'x/Max': 1, 'admin/x': 1, consumed: 1, 'timing_s/max': 1, v: 1 },
      },
      {
        samples: 3,
        metrics: { 'actor/lr': 3, critic_LR: 2, 'x/Max': 3, 'admin/x': 3, consumed: 3, 'timing_s/max': 3, v: 5 },
      },
    ]);
    expect(merged).toEqual({
      'actor/lr': 3,
      critic_LR: 2,
      'x/Max': 3,
      'admin/x': 1,
      consumed: 4,
      'timing_s/max': 4,
      v: 4,
    });
  });

  it('weigh the staleness of evicted samples by their number', () => {
    const name = 'training/off_policy/evicted_samples';
    const step = (evicted: number, staleness: number) => ({
      samples: 100,
      metrics: { [name]: evicted, [`${name}_staleness/mean`]: staleness },
    });
    expect(mergeStepMetrics([step(1, 2), step(3, 6)])).toEqual({ [name]: 4, [`${name}_staleness/mean`]: 5 });
  });

  it('are plain means without samples, and nothing for no steps; a name that one step has keeps its value', () => {
    expect(
      mergeStepMetrics([
        { samples: 0, metrics: { a: 1, b: 7 } },
        { samples: 0, metrics: { a: 4 } },
      ]),
    ).toEqual({
      a: 2.5,
      b: 7,
    });
    expect(mergeStepMetrics([])).toEqual({});
  });

  it('do not hide a NaN (seed 42)', () => {
    fc.assert(
      fc.property(fc.constantFrom('v', 'x/max', 'x/min', 'total'), fc.integer({ min: 0, max: 2 }), (name, where) => {
        const steps = [1, 2, 3].map((value, i) => ({
          samples: 1,
          metrics: { [name]: i === where ? Number.NaN : value },
        }));
        expect(mergeStepMetrics(steps)[name]).toBeNaN();
      }),
      { seed: 42 },
    );
  });
});
