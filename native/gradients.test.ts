import { describe, expect, test } from 'vitest';

import type { NativeTrainer } from './index.ts';
import { batchOf, decoder, randomOf, trainerOf } from './testing/decoders.ts';
import type { Shape } from './testing/decoders.ts';

/**
 * The loss Σ c·logProb + Σ e·entropy has a directional derivative ⟨gradient, d⟩ for any direction d; it must equal the
 * central difference of the loss along d. Directions that touch one parameter only test that parameter's whole gradient
 * path. fp32 sums limit the agreement to about 1e-3 of the derivative's scale.
 */
const shapes: Record<string, Partial<Shape>> = {
  'plain, untied, odd sizes': {},
  'tied head': { tied: true },
  'biases everywhere': { qkvBias: true, outBias: true, mlpBias: true },
  'norms of q and k': { qkNorm: true },
  'a window of 3 on the second layer': { windows: [0, 3] },
  'one key head for four': { kvHeads: 1 },
  'as many key heads as heads': { kvHeads: 4, headDim: 10 },
  'heads wider than a vector': { headDim: 34, heads: 2, kvHeads: 1 },
  'norms around both blocks, weight + 1': { normsAround: true },
  gelu: { activation: 'geluTanh' },
  'soft caps on scores and logits': { softcap: 1.5 },
  'a scaled embedding': { embeddingScale: 3.5, tied: true },
  'q, k, v in one tensor, gate and up in another': { fused: true, qkvBias: true },
  'rope on the first four of six dimensions': { rope: [1, 0.1] },
  'a group of fourteen heads': { heads: 14, kvHeads: 1, headDim: 2 },
  'everything at once': {
    tied: true,
    qkvBias: true,
    outBias: true,
    mlpBias: true,
    qkNorm: true,
    windows: [5, 2],
    normsAround: true,
    activation: 'geluTanh',
    softcap: 2,
    embeddingScale: 2,
    heads: 6,
    kvHeads: 3,
    layers: 2,
  },
};

describe('gradients agree with finite differences', () => {
  let seed = 100;
  for (const [name, changes] of Object.entries(shapes)) {
    const own = ++seed;
    test(`${name}, seed ${own}`, () => {
      const config = decoder(changes);
      const trainer = trainerOf(config, own);
      const batch = batchOf(config, [1, 7, 33, 18], own);
      const random = randomOf(own + 1);
      const c = Float32Array.from(batch.positions_P, () => random() - 0.5);
      const e = Float32Array.from(batch.positions_P, () => random() - 0.5);
      const loss = (): number => {
        trainer.weightsChanged();
        const {
          outputs: { logProbs: logProbs_P, entropy: entropy_P },
        } = trainer.forward(batch, { temperature: 0.8, wants: ['logProbs', 'entropy'], keep: false });
        return c.reduce((sum, x, i) => sum + x * logProbs_P[i]! + e[i]! * entropy_P[i]!, 0);
      };
      const { handle } = trainer.forward(batch, { temperature: 0.8, wants: ['logProbs', 'entropy'], keep: true });
      trainer.backward(handle, { logProbs: c, entropy: e });
      for (const parameter of trainer.parameters) checkParameter(trainer, parameter, loss, random);
      trainer.close();
    });
  }
});

function checkParameter(
  trainer: NativeTrainer,
  { name, offset, size }: { name: string; offset: number; size: number },
  loss: () => number,
  random: () => number,
): void {
  const saved = trainer.read('weights', offset, new Float32Array(size));
  const gradient = trainer.read('grads', offset, new Float32Array(size));
  const direction = Float64Array.from(saved, () => random() - 0.5);
  const length = Math.sqrt(direction.reduce((sum, x) => sum + x * x, 0));
  const h = 4e-3;
  const at = (sign: number): number => {
    const moved = saved.map((weight, i) => weight + (sign * h * direction[i]!) / length);
    trainer.write('weights', moved, offset);
    return loss();
  };
  // Fourth-order central difference: the truncation error stays below that of fp32.
  const numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
  trainer.write('weights', saved, offset);
  const exact = gradient.reduce((sum, g, i) => sum + (g * direction[i]!) / length, 0);
  const scale = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
  expect(Math.abs(numeric - exact), `${name}: numeric ${numeric}, gradient ${exact}`).toBeLessThan(
    3e-3 * Math.abs(exact) + (2e-3 * scale) / Math.sqrt(size) + 2e-3,
  );
}

test('gradients of several forward passes add up, whatever the order of their backward passes', () => {
  const config = decoder();
  const trainer = trainerOf(config, 7);
  const [a, b] = [batchOf(config, [9, 4], 1), batchOf(config, [12], 2)];
  const ones = (n: number) => new Float32Array(n).fill(1);
  const gradientOf = (batch: typeof a): Float32Array => {
    trainer.zeroGrads();
    trainer.backward(trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true }).handle, {
      logProbs: ones(batch.positions_P.length),
    });
    return trainer.read('grads');
  };
  const [ga, gb] = [gradientOf(a), gradientOf(b)];
  trainer.zeroGrads();
  const first = trainer.forward(a, { temperature: 1, wants: ['logProbs'], keep: true }).handle;
  const second = trainer.forward(b, { temperature: 1, wants: ['logProbs'], keep: true }).handle;
  trainer.backward(second, { logProbs: ones(12) });
  trainer.backward(first, { logProbs: ones(13) });
  trainer.read('grads').forEach((g, i) => expect(Math.abs(g - ga[i]! - gb[i]!)).toBeLessThan(1e-4));
  trainer.close();
});

test('positions that are not scored take no gradient of their own', () => {
  const config = decoder();
  const trainer = trainerOf(config, 8);
  const batch = batchOf(config, [20], 3);
  const some = { ...batch, positions_P: Int32Array.of(4, 11), targets_P: Int32Array.of(1, 2) };
  const c = new Float32Array(20);
  c[4] = 0.5;
  c[11] = -0.25;
  const targets = batch.targets_P.slice();
  targets[4] = 1;
  targets[11] = 2;
  const all = trainer.forward({ ...batch, targets_P: targets }, { temperature: 1, wants: ['logProbs'], keep: true });
  trainer.backward(all.handle, { logProbs: c });
  const whole = trainer.read('grads');
  trainer.zeroGrads();
  const part = trainer.forward(some, { temperature: 1, wants: ['logProbs'], keep: true });
  expect([...part.outputs.logProbs]).toEqual([all.outputs.logProbs[4], all.outputs.logProbs[11]]);
  trainer.backward(part.handle, { logProbs: Float32Array.of(0.5, -0.25) });
  trainer.read('grads').forEach((g, i) => expect(Math.abs(g - whole[i]!)).toBeLessThan(1e-5));
  trainer.close();
});
