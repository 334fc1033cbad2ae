import { describe, expect, it } from 'vitest';
import { checkedSampling, ownSampling } from './sampler.ts';
import type { OwnSampler, OwnSamplerInput } from './types.ts';

const input: OwnSamplerInput = { seed: 7, iteration: 0, rows: 3, facts: [], results: [], state: null };
const of = (compute: (given: OwnSamplerInput) => unknown): OwnSampler => ({
  compute: compute as OwnSampler['compute'],
});

describe('a sampler', () => {
  it('answers with weights, and a state as JSON has it', () => {
    const answer = ownSampling(
      of(() => ({ weights: Float64Array.of(0, 0.5, 2), state: { a: [1, undefined] } })),
      input,
    );
    expect(answer).toEqual({ weights: [0, 0.5, 2], state: { a: [1, null] } });
    expect(
      ownSampling(
        of(() => ({ weights: [1, 1, 1] })),
        input,
      ).state,
    ).toBeNull();
  });

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /expected an object/],
    ['a promise', Promise.resolve({}), /got a promise/],
    ['too few weights', { weights: [1, 1] }, /weights: expected 3 values, got 2/],
    ['a negative weight', { weights: [1, -1, 1] }, /weights\[1\] is -1: expected 0 or more/],
    ['NaN', { weights: [1, NaN, 1] }, /weights\[1\] is NaN/],
    ['no row', { weights: [0, 0, 0] }, /all weights are 0/],
    [
      'a function as its state',
      { weights: [1, 1, 1], state: () => 1 },
      /state: expected what JSON can hold, got function/,
    ],
    ['a state that JSON cannot hold', { weights: [1, 1, 1], state: 1n }, /state: it cannot be stored as JSON/],
    ['a large state', { weights: [1, 1, 1], state: 'x'.repeat(2 ** 20) }, /at most 1048576 are kept/],
  ])('that returns %s is refused', (_, result, message) => {
    expect(() =>
      ownSampling(
        of(() => result),
        input,
      ),
    ).toThrow(message);
  });

  it('may write to its copy of what it is given', () => {
    const given = { ...input, state: { seen: [1] } };
    const greedy = of(({ state }) => {
      (state as { seen: number[] }).seen.push(2);
      return { weights: [1, 1, 1] };
    });
    ownSampling(greedy, given);
    expect(given.state).toEqual({ seen: [1] });
  });

  it('that answers differently the second time is refused', () => {
    let calls = 0;
    expect(() =>
      checkedSampling(
        of(() => ({ weights: [1, 1, ++calls] })),
        input,
      ),
    ).toThrow(/different results/);
    expect(
      checkedSampling(
        of(() => ({ weights: [1, 1, 1] })),
        input,
      ).weights,
    ).toEqual([1, 1, 1]);
  });
});
