/** How a batch is divided into forward passes: laws that hold for every batch. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AdvantageInput, AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { Sample } from '../samples/samples.ts';
import { planSteps } from './step-plan.ts';

interface Given {
  readonly prompts: readonly number[];
  /** Lengths of the responses to each prompt. */
  readonly responses: readonly (readonly number[])[];
  readonly limit: number;
  readonly miniBatchPrompts: number;
  readonly epochs: number;
  readonly sequences: number | undefined;
  readonly layout: 'prefixTree' | undefined;
  readonly lossMode: 'vanilla' | 'gvpo';
}

const longestPrompt = 12;
const longestResponse = 20;
const n = 4;

const given: fc.Arbitrary<Given> = fc
  .record({
    prompts: fc.array(fc.integer({ min: 1, max: longestPrompt }), { minLength: 1, maxLength: 8 }),
    lengths: fc.array(fc.integer({ min: 1, max: longestResponse }), { minLength: 32, maxLength: 32 }),
    // Room for a whole group, as the recipe's check asks for it.
    limit: fc.integer({ min: n * (longestPrompt + longestResponse), max: 400 }),
    miniBatchPrompts: fc.integer({ min: 1, max: 4 }),
    epochs: fc.integer({ min: 1, max: 3 }),
    sequences: fc.option(fc.integer({ min: n, max: 12 }), { nil: undefined }),
    layout: fc.constantFrom('prefixTree' as const, undefined),
    lossMode: fc.constantFrom('vanilla' as const, 'gvpo' as const),
  })
  .map(({ lengths, ...rest }) => ({
    ...rest,
    responses: rest.prompts.map((_, g) => lengths.slice(g * n, (g + 1) * n)),
  }));

const samplesOf = ({ prompts, responses }: Given): Sample[] =>
  responses.flatMap((lengths, draw) =>
    lengths.map(
      (length) =>
        ({ draw, prompt: new Int32Array(prompts[draw] ?? 0), response: new Int32Array(length) }) as unknown as Sample,
    ),
  );

const inputOf = ({ limit, miniBatchPrompts, epochs, sequences, layout, lossMode }: Given): AdvantageInput => {
  const algorithm = {
    seed: [1, 2],
    samplesPerDraw: n,
    miniBatchPrompts,
    epochs,
    shuffle: true,
    maxTokensPerMicroBatch: limit,
    ...(sequences !== undefined && { sequencesPerMicroBatch: sequences }),
    ...(layout && { layout }),
    loss: { kind: 'policy', lossMode } as AlgorithmSettings['loss'],
  } as unknown as AlgorithmSettings;
  return { kind: 'rl', iteration: 3, algorithm } as AdvantageInput;
};

/** Tokens of a forward pass: in a tree, neighbours with the same prompt have it once. */
function tokensOf(samples: readonly Sample[], micro: readonly number[], layout: Given['layout']): number {
  return micro.reduce((sum, b, i) => {
    const before = i === 0 ? undefined : samples[micro[i - 1]!];
    const shares = layout === 'prefixTree' && before?.draw === samples[b]!.draw;
    return sum + samples[b]!.response.length + (shares ? 0 : samples[b]!.prompt.length);
  }, 0);
}

describe('a plan of forward passes', () => {
  it('has every sample once per epoch, in the mini-batch of its prompt', () => {
    fc.assert(
      fc.property(given, (one) => {
        const samples = samplesOf(one);
        const { steps, micros } = planSteps(inputOf(one), samples);
        expect(steps.flat()).toEqual(micros.map((_, m) => m));
        const perEpoch = Math.ceil(one.prompts.length / one.miniBatchPrompts);
        expect(steps).toHaveLength(perEpoch * one.epochs);
        for (let epoch = 0; epoch < one.epochs; epoch++) {
          const ofEpoch = steps.slice(epoch * perEpoch, (epoch + 1) * perEpoch);
          const seen = ofEpoch.map((step) => step.flatMap((m) => micros[m]!));
          expect(seen.flat().toSorted((a, b) => a - b)).toEqual(samples.map((_, b) => b));
          const draws = seen.map((step) => new Set(step.map((b) => samples[b]!.draw)));
          expect(draws.reduce((sum, of) => sum + of.size, 0)).toBe(one.prompts.length);
        }
      }),
    );
  });

  it('never exceeds the token limit, nor the number of sequences', () => {
    fc.assert(
      fc.property(given, (one) => {
        const samples = samplesOf(one);
        for (const micro of planSteps(inputOf(one), samples).micros) {
          expect(tokensOf(samples, micro, one.layout)).toBeLessThanOrEqual(one.limit);
          expect(micro.length).toBeLessThanOrEqual(one.sequences ?? Number.POSITIVE_INFINITY);
        }
      }),
    );
  });

  it('keeps a group in one pass where the loss reads it', () => {
    fc.assert(
      fc.property(given, (one) => {
        const samples = samplesOf(one);
        const { steps, micros } = planSteps(inputOf({ ...one, lossMode: 'gvpo' }), samples);
        for (const step of steps) {
          const places = step.flatMap((m) => [...new Set(micros[m]!.map((b) => samples[b]!.draw))]);
          expect(new Set(places).size).toBe(places.length);
        }
      }),
    );
  });

  it('with a number of sequences, fills every pass of a step but the last one, where tokens allow it', () => {
    fc.assert(
      fc.property(given, fc.integer({ min: 1, max: 6 }), (one, sequences) => {
        const usual = { ...one, sequences, lossMode: 'vanilla' as const, limit: 10_000 };
        const { steps, micros } = planSteps(inputOf(usual), samplesOf(usual));
        for (const step of steps)
          expect(step.slice(0, -1).map((m) => micros[m]!.length)).toEqual(step.slice(0, -1).map(() => sequences));
      }),
    );
  });

  it('is the same each time, and uses no more passes than sequences', () => {
    fc.assert(
      fc.property(given, (one) => {
        const samples = samplesOf(one);
        const plan = planSteps(inputOf(one), samples);
        expect(planSteps(inputOf(one), samples)).toEqual(plan);
        expect(plan.micros.length).toBeLessThanOrEqual(samples.length * one.epochs);
        expect(plan.micros.every((micro) => micro.length > 0)).toBe(true);
      }),
    );
  });
});
