/** Completions that hang on one copy of their prompt: the same numbers as with a copy for each. */
import { describe, expect, test } from 'vitest';
import { at } from '../core/at.ts';
import type { DecoderSpec } from './model/spec.ts';
import type { PackedBatch } from '../core/ports/policy.ts';
import { randomInteger, randomNumbers, randomShape } from './testing/generation.ts';
import type { NativeTrainer } from './index.ts';
import { decoder, trainerOf } from './testing/decoders.ts';

/** A prompt and its completions. */
interface Group {
  readonly prompt: readonly number[];
  readonly completions: readonly (readonly number[])[];
}

function randomGroups(random: () => number, { vocab }: DecoderSpec): Group[] {
  const tokens = (least: number, most: number) =>
    Array.from({ length: randomInteger(random, least, most) }, () => randomInteger(random, 0, vocab - 1));
  return Array.from({ length: randomInteger(random, 1, 4) }, () => ({
    prompt: tokens(1, 60),
    completions: Array.from({ length: randomInteger(random, 1, 5) }, () => tokens(1, 40)),
  }));
}

/**
 * Every completion behind a copy of its prompt. Every token of it is scored, the first by the prompt's last position.
 */
function flat(groups: readonly Group[]): Required<Omit<PackedBatch, 'parents_S' | 'columns_P'>> {
  const sequences = groups.flatMap(({ prompt, completions }) =>
    completions.map((completion) => ({ prompt, completion })),
  );
  const cuSeqlens = [0];
  const positions: number[] = [];
  for (const { prompt, completion } of sequences) {
    const start = at(cuSeqlens, -1);
    completion.forEach((_, t) => positions.push(start + prompt.length + t - 1));
    cuSeqlens.push(start + prompt.length + completion.length);
  }
  return {
    tokens_N: Int32Array.from(sequences.flatMap(({ prompt, completion }) => [...prompt, ...completion])),
    cuSeqlens: Int32Array.from(cuSeqlens),
    positions_P: Int32Array.from(positions),
    targets_P: Int32Array.from(sequences.flatMap(({ completion }) => completion)),
  };
}

/** Every prompt once; the scored tokens are those of `flat`, in the same order. */
function shared(groups: readonly Group[]): PackedBatch {
  const tokens: number[] = [];
  const cuSeqlens = [0];
  const parents: number[] = [];
  const positions: number[] = [];
  const add = (segment: readonly number[], parent: number): number => {
    tokens.push(...segment);
    cuSeqlens.push(tokens.length);
    return parents.push(parent) - 1;
  };
  for (const { prompt, completions } of groups) {
    const root = add(prompt, -1);
    const end = tokens.length;
    for (const completion of completions) {
      const start = tokens.length;
      add(completion, root);
      completion.forEach((_, t) => positions.push(t === 0 ? end - 1 : start + t - 1));
    }
  }
  return {
    tokens_N: Int32Array.from(tokens),
    cuSeqlens: Int32Array.from(cuSeqlens),
    parents_S: Int32Array.from(parents),
    positions_P: Int32Array.from(positions),
    targets_P: flat(groups).targets_P,
  };
}

const wants = ['logProbs', 'entropy'] as const;

function gradientOf(trainer: NativeTrainer, batch: PackedBatch, c: Float32Array, e: Float32Array): Float32Array {
  trainer.zeroGrads();
  const { handle } = trainer.forward(batch, { temperature: 0.9, wants, keep: true });
  trainer.backward(handle, { logProbs: c, entropy: e });
  return trainer.read('grads');
}

describe('completions on one copy of their prompt', () => {
  test.each(Array.from({ length: 40 }, (_, i) => 700 + i))(
    'have the log-probs of flat sequences to the bit, and their gradients to rounding (seed %i)',
    (seed) => {
      const random = randomNumbers(seed);
      const spec = decoder(randomShape(random));
      const trainer = trainerOf(spec, seed, { threads: 1 + (seed % 2) });
      const groups = randomGroups(random, spec);
      const whole = flat(groups);
      const batch = shared(groups);
      const options = { temperature: 0.9, wants, keep: false } as const;
      const expected = trainer.forward(whole, options).outputs;
      const found = trainer.forward(batch, options).outputs;
      expect([...found.logProbs]).toEqual([...expected.logProbs]);
      expect([...found.entropy]).toEqual([...expected.entropy]);

      const coefficients = () => Float32Array.from(whole.positions_P, () => random() - 0.5);
      const [c, e] = [coefficients(), coefficients()];
      const a = gradientOf(trainer, whole, c, e);
      const b = gradientOf(trainer, batch, c, e);
      const size = Math.sqrt(a.reduce((sum, x) => sum + x * x, 0));
      const gap = Math.sqrt(a.reduce((sum, x, i) => sum + (x - at(b, i)) ** 2, 0));
      expect(gap).toBeLessThan(2e-5 * size);
      trainer.close();
    },
  );

  test('give the same bits with 1 and 2 threads', () => {
    const random = randomNumbers(9);
    const spec = decoder({ layers: 2, hidden: 48, heads: 6, kvHeads: 3, headDim: 24, windows: [0, 20] });
    const groups = randomGroups(random, spec);
    const batch = shared(groups);
    const c = Float32Array.from(batch.positions_P, () => random() - 0.5);
    const gradients = [1, 2].map((threads) => {
      const trainer = trainerOf(spec, 9, { threads });
      const gradient = gradientOf(trainer, batch, c, c);
      trainer.close();
      return [...gradient];
    });
    expect(gradients[1]).toEqual(gradients[0]);
  });

  test.each([
    ['a parent that comes later', [1, -1], 'an earlier sequence'],
    ['a parent that continues another', [-1, 0, 1], 'an earlier sequence'],
    ['too few parents', [-1], 'parents'],
  ])('are refused with %s', (_, parents, message) => {
    const trainer = trainerOf(decoder(), 1);
    const count = Math.max(2, parents.length);
    const batch = {
      tokens_N: new Int32Array(count),
      cuSeqlens: Int32Array.from({ length: count + 1 }, (_, i) => i),
      parents_S: Int32Array.from(parents),
      positions_P: Int32Array.of(0),
      targets_P: Int32Array.of(0),
    };
    expect(() => trainer.forward(batch, { temperature: 1, wants, keep: false })).toThrow(message);
    trainer.close();
  });
});
