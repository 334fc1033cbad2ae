import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import { StepRouting } from './routing.ts';

const mixture = { outputs: ['logProbs', 'expertTokens', 'routerLoss'], experts: 3 } as const;

describe('what an optimiser step says of a mixture', () => {
  it('is nothing for a model without experts', () => {
    const routing = new StepRouting({ outputs: ['logProbs', 'entropy'] }, 0);
    expect(routing.wants).toEqual([]);
    expect(routing.add({}, 1)).toEqual({ loss: 0, gradients: {} });
    expect(routing.metrics()).toEqual({});
  });

  it('adds up the micro-batches before it compares the experts of a layer', () => {
    const routing = new StepRouting(mixture, 0);
    // Two layers of three experts: 6 and 12 tokens, of which one expert gets none.
    routing.add({ expertTokens: Int32Array.of(1, 1, 0, 4, 0, 2), routerLoss: Float32Array.of(2) }, 0.25);
    routing.add({ expertTokens: Int32Array.of(1, 1, 2, 4, 0, 2), routerLoss: Float32Array.of(4) }, 0.75);
    expect(routing.metrics()).toEqual({
      expert_load_max: 2,
      expert_load_min: 0,
      idle_experts: 1 / 6,
      router_aux_loss: 3.5,
    });
  });

  it('weights the loss of a micro-batch by its samples, and its gradient by both weights', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.001, max: 10, noNaN: true }),
        fc.array(fc.record({ samples: fc.integer({ min: 1, max: 9 }), loss: fc.integer({ min: 0, max: 8 }) }), {
          minLength: 1,
        }),
        (coefficient, micros) => {
          const all = micros.reduce((sum, { samples }) => sum + samples, 0);
          const routing = new StepRouting(mixture, coefficient);
          const added = micros.map(({ samples, loss }) =>
            routing.add({ expertTokens: Int32Array.of(1, 1, 1), routerLoss: Float32Array.of(loss) }, samples / all),
          );
          const mean = micros.reduce((sum, { samples, loss }) => sum + samples * loss, 0) / all;
          expect(routing.metrics()['router_aux_loss']).toBeCloseTo(mean, 8);
          expect(added.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(coefficient * mean, 8);
          for (const [m, { gradients }] of added.entries())
            expect(gradients.routerLoss).toEqual(Float32Array.of((coefficient * at(micros, m).samples) / all));
        },
      ),
    );
  });

  it('has no gradient without a weight', () => {
    const routing = new StepRouting(mixture, 0);
    const added = routing.add({ expertTokens: Int32Array.of(1, 1, 1), routerLoss: Float32Array.of(2) }, 1);
    expect(added).toEqual({ loss: 0, gradients: {} });
  });

  it('refuses a weight where there is no such loss', () => {
    expect(() => new StepRouting({ outputs: ['logProbs', 'expertTokens'], experts: 4 }, 0.01)).toThrow(
      expect.objectContaining({ code: 'NoAuxiliaryLoss' }),
    );
  });
});
