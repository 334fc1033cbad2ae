import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';

import type { ComputeType } from '../core/parameters.ts';
import { engineInfo } from './index.ts';
import { batchOf, decoder, randomOf, sampleOf, trainerOf } from './testing/decoders.ts';

const wide = decoder({
  hidden: 72,
  heads: 6,
  kvHeads: 2,
  headDim: 24,
  ffn: 200,
  vocab: 301,
  windows: [0, 19],
  qkNorm: true,
  qkvBias: true,
});
const scoring = { temperature: 0.9, wants: ['logProbs', 'entropy', 'sumPiSquared'], keep: false } as const;

/** What this processor computes in. In bf16 its class of processors has bits of its own. */
const computes: readonly ComputeType[] = engineInfo().bf16 ? ['fp32', 'bf16'] : ['fp32'];

describe.each(computes)('deterministic log-probs in %s', (compute) => {
  for (const seed of [1, 2, 3]) {
    test(`of a sequence are the same bits alone, among 7 and among 64, with 1 and 2 threads, seed ${seed}`, () => {
      const random = randomOf(seed);
      const lengths = Array.from({ length: 64 }, () => 1 + Math.floor(random() * 70));
      const batch = batchOf(wide, lengths, seed);
      const [one, two] = [
        trainerOf(wide, seed, { compute, threads: 1 }),
        trainerOf(wide, seed, { compute, threads: 2 }),
      ];
      const all = one.forward(batch, scoring);
      expect(two.forward(batch, scoring)).toEqual(all);
      for (const s of [0, 5, 63]) {
        const [from, to] = [batch.cuSeqlens[s]!, batch.cuSeqlens[s + 1]!];
        const alone = two.forward(sampleOf(batch, s), scoring);
        expect(alone.outputs.logProbs).toEqual(all.outputs.logProbs.slice(from, to));
        expect(alone.outputs.entropy).toEqual(all.outputs.entropy.slice(from, to));
        expect(alone.outputs.sumPiSquared).toEqual(all.outputs.sumPiSquared.slice(from, to));
      }
      const end = batch.cuSeqlens[7]!;
      const seven = {
        tokens_N: batch.tokens_N.slice(0, end),
        cuSeqlens: batch.cuSeqlens.slice(0, 8),
        positions_P: batch.positions_P.slice(0, end),
        targets_P: batch.targets_P.slice(0, end),
      };
      expect(one.forward(seven, scoring).outputs.logProbs).toEqual(all.outputs.logProbs.slice(0, end));
      one.close();
      two.close();
    });
  }

  test('of a prefix do not depend on what follows', () => {
    const trainer = trainerOf(wide, 4, { compute });
    const batch = batchOf(wide, [50], 4);
    const whole = trainer.forward(batch, scoring).outputs.logProbs;
    for (const length of [1, 15, 16, 17, 33]) {
      const prefix = {
        tokens_N: batch.tokens_N.slice(0, length),
        cuSeqlens: Int32Array.of(0, length),
        positions_P: batch.positions_P.slice(0, length),
        targets_P: batch.targets_P.slice(0, length),
      };
      expect(trainer.forward(prefix, scoring).outputs.logProbs).toEqual(whole.slice(0, length));
    }
    trainer.close();
  });
});

/** Weights after three optimiser steps, and Σ p² before each, as one digest. */
function trained(threads: number, compute: ComputeType = 'fp32'): string {
  const trainer = trainerOf(wide, 9, { compute, threads });
  const batch = batchOf(wide, [40, 3, 90, 17, 64], 9);
  const hash = createHash('sha256');
  for (let step = 0; step < 3; step++) {
    const {
      handle,
      outputs: { logProbs: logProbs_P, entropy: entropy_P, sumPiSquared },
    } = trainer.forward(batch, { temperature: 1, wants: ['logProbs', 'entropy', 'sumPiSquared'], keep: true });
    hash.update(sumPiSquared);
    trainer.backward(handle, { logProbs: logProbs_P.map((x) => x / 100), entropy: entropy_P.map(() => 0.001) });
    trainer.step({ lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 });
  }
  const digest = hash.update(trainer.read('weights')).digest('hex');
  trainer.close();
  return digest;
}

test.each(computes)('deterministic training in %s gives the same bits with 1, 2 and 3 threads', (compute) => {
  expect(trained(2, compute)).toBe(trained(1, compute));
  expect(trained(3, compute)).toBe(trained(1, compute));
});

/** A lower path needs its own process: the choice is made once in each. */
const inner = process.env['PETREL_TEST_DIGEST'] === '1';
test.runIf(inner)('prints the digest of training for the outer test', () => {
  console.log(`digest=${trained(2)}`);
});

test.skipIf(inner || engineInfo().isa === 'avx2')(
  'deterministic training gives the same bits on AVX2 and AVX-512 (skipped where there is only AVX2)',
  () => {
    const output = execFileSync(
      process.execPath,
      [
        'node_modules/vitest/vitest.mjs',
        'run',
        '--project',
        'component',
        'native/determinism.test.ts',
        '-t',
        'prints the digest',
      ],
      {
        env: { ...process.env, PETREL_ISA: 'avx2', PETREL_TEST_DIGEST: '1' },
        encoding: 'utf8',
      },
    );
    expect(/digest=([0-9a-f]{64})/.exec(output)?.[1]).toBe(trained(2));
  },
);
