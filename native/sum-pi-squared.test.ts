import { expect, test } from 'vitest';
import { batchOf, decoder, trainerOf } from './testing/decoders.ts';
import type { Shape } from './testing/decoders.ts';

const temperatures = [0.3, 1, 1.7];
const shapes: Record<string, Partial<Shape>> = {
  'a vocabulary of 1': { vocab: 1 },
  'a vocabulary smaller than a vector': { vocab: 7 },
  'a vocabulary of whole vectors': { vocab: 64 },
  'an odd vocabulary': { vocab: 1003 },
  'a soft cap on the logits': { vocab: 333, softcap: 1.5 },
};

/** Σ p² of softmax(logits / temperature) in float64. */
function reference(logits_V: Float32Array, temperature: number): number {
  const scale = Math.fround(1 / temperature); // as the engine gets it
  const max = logits_V.reduce((a, b) => Math.max(a, b));
  const weights = Array.from(logits_V, (logit) => Math.exp((logit - max) * scale));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.reduce((sum, weight) => sum + (weight / total) ** 2, 0);
}

test.each(Object.entries(shapes))('sums of squared probabilities agree with float64: %s', (_, shape) => {
  const spec = decoder(shape);
  const trainer = trainerOf(spec, 21);
  // Large weights give certain tokens, too.
  for (const size of [1, 8]) {
    trainer.write(
      'weights',
      trainer.read('weights').map((weight) => weight * size),
    );
    trainer.weightsChanged();
    const batch = batchOf(spec, [5, 1, 12], 3);
    for (const temperature of temperatures) {
      const wants = ['sumPiSquared', 'logits'] as const;
      const { outputs } = trainer.forward(batch, { temperature, wants, keep: false });
      const errors = Array.from(outputs.sumPiSquared, (found, p) => {
        const expected = reference(outputs.logits.subarray(p * spec.vocab, (p + 1) * spec.vocab), temperature);
        return Math.abs(found - expected) / expected;
      });
      expect(Math.max(...errors)).toBeLessThan(2e-5);
    }
  }
  trainer.close();
});

test('sums of squared probabilities change no other output, and are the same with what backward needs', () => {
  const spec = decoder({ vocab: 101 });
  const trainer = trainerOf(spec, 22);
  const batch = batchOf(spec, [9, 4], 5);
  const some = trainer.forward(batch, { temperature: 0.9, wants: ['logProbs', 'entropy'], keep: false }).outputs;
  const all = trainer.forward(batch, {
    temperature: 0.9,
    wants: ['logProbs', 'entropy', 'sumPiSquared'],
    keep: true,
  });
  expect({ logProbs: all.outputs.logProbs, entropy: all.outputs.entropy }).toEqual(some);
  const alone = trainer.forward(batch, { temperature: 0.9, wants: ['sumPiSquared'], keep: false }).outputs;
  expect(alone.sumPiSquared).toEqual(all.outputs.sumPiSquared);
  trainer.discard(all.handle);
  trainer.close();
});

test('a value head gives none', () => {
  const spec = decoder({ head: 'values' });
  const trainer = trainerOf(spec, 23);
  const options = { temperature: 1, wants: ['sumPiSquared'] as const, keep: false };
  expect(() => trainer.forward(batchOf(spec, [3], 1), options)).toThrow(/gives values, not sumPiSquared/);
  trainer.close();
});
