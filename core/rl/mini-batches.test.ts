import fc from 'fast-check';
import { expect, test } from 'vitest';
import { miniBatches } from './mini-batches.ts';

test('every epoch uses every sample once, in whole groups, with a bounded number of prompts per step', () => {
  const plan = fc.record({
    promptsPerMiniBatch: fc.integer({ min: 1, max: 5 }),
    epochs: fc.integer({ min: 1, max: 3 }),
    shuffle: fc.boolean(),
    seed: fc.tuple(fc.nat(), fc.nat()),
  });
  fc.assert(
    fc.property(fc.array(fc.nat(5), { minLength: 1, maxLength: 20 }), plan, (groups_S, options) => {
      const steps = miniBatches(groups_S, options);
      for (let epoch = 0; epoch < options.epochs; epoch++) {
        const ofEpoch = steps.filter((step) => step.epoch === epoch);
        expect(ofEpoch.flatMap((step) => step.samples).sort((a, b) => a - b)).toEqual(groups_S.map((_, s) => s));
        const prompts = ofEpoch.map((step) => new Set(step.samples.map((s) => groups_S[s])));
        expect(prompts.reduce((sum, set) => sum + set.size, 0)).toBe(new Set(groups_S).size);
        for (const set of prompts) expect(set.size).toBeLessThanOrEqual(options.promptsPerMiniBatch);
      }
      expect(miniBatches(groups_S, options)).toEqual(steps);
    }),
  );
});

test('epochs are shuffled differently, or not at all without `shuffle`', () => {
  const groups_S = Array.from({ length: 16 }, (_, g) => g);
  const plan = { promptsPerMiniBatch: 16, epochs: 2, seed: [1] };
  const [first, second] = miniBatches(groups_S, { ...plan, shuffle: true });
  expect(first?.samples).not.toEqual(second?.samples);
  expect(miniBatches(groups_S, { ...plan, shuffle: false })[1]?.samples).toEqual(groups_S);
});
