import { expect, test } from 'vitest';

import { engineInfo } from './index.ts';
import { batchOf, decoder, trainerOf } from './testing/decoders.ts';

const can = engineInfo().bf16;
const shapes = [
  decoder({ hidden: 64, heads: 4, kvHeads: 2, headDim: 16, ffn: 160, vocab: 320 }),
  decoder({
    hidden: 21,
    heads: 3,
    kvHeads: 1,
    headDim: 14,
    ffn: 35,
    vocab: 41,
    qkvBias: true,
    qkNorm: true,
    tied: true,
  }),
];

for (const [index, config] of shapes.entries()) {
  test.skipIf(!can)(
    `bf16 stays near fp32 in log-probs and gradients, shape ${index} (skipped: needs AVX512_BF16)`,
    () => {
      const [exact, rounded] = [
        trainerOf(config, 5),
        trainerOf(config, 5, { compute: 'bf16', deterministic: false, threads: 2 }),
      ];
      const batch = batchOf(config, [1, 40, 77, 5], 6);
      const results = [exact, rounded].map((trainer) => {
        const {
          handle,
          outputs: { logProbs: logProbs_P },
        } = trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true });
        trainer.backward(handle, { logProbs: logProbs_P.map(() => 0.01) });
        return logProbs_P;
      });
      // bf16 keeps 8 bits: 0.4 % an input, averaged over sums; logits here are of size about 3.
      const worst = results[0]!.reduce((most, x, i) => Math.max(most, Math.abs(x - results[1]![i]!)), 0);
      expect(worst).toBeGreaterThan(0);
      expect(worst).toBeLessThan(0.3);
      const [gradients, near] = [exact.read('grads'), rounded.read('grads')];
      expect(length(gradients.map((g, i) => g - near[i]!)) / length(gradients)).toBeLessThan(0.1);
      exact.close();
      rounded.close();
    },
  );
}

test.skipIf(!can)('bf16 gives the same bits with 1 and 2 threads (skipped: needs AVX512_BF16)', () => {
  const results = [1, 2].map((threads) => {
    const trainer = trainerOf(shapes[0]!, 5, { compute: 'bf16', deterministic: false, threads });
    const {
      handle,
      outputs: { logProbs: logProbs_P },
    } = trainer.forward(batchOf(shapes[0]!, [30, 60], 6), {
      temperature: 1,
      wants: ['logProbs'],
      keep: true,
    });
    trainer.backward(handle, { logProbs: logProbs_P.map(() => 0.01) });
    const grads = trainer.read('grads');
    trainer.close();
    return grads;
  });
  expect(results[0]).toEqual(results[1]);
});

function length(x: Float32Array): number {
  return Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));
}
