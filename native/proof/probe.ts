/**
 * A few milliseconds of the engine's work as one digest: scoring with gradients, an optimiser step, prefill, decoding
 * and every filter of sampling, on two small decoders, and an optimiser step on subnormal numbers. Each kernel takes
 * part.
 */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import type { DecoderSpec } from '../model/spec.ts';
import type { PackedBatch } from '../../core/ports/policy.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { stateParts } from '../../core/records/state-parts.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import { adamw } from '../arrays.ts';
import { createGenerator } from '../generate.ts';
import { logProbEntropy, processLogits } from '../sampling.ts';
import { createTrainer } from '../trainer.ts';
import type { NativeTrainer } from '../trainer.ts';
import { geluDecoder, siluDecoder } from './decoders.ts';

const step = { lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };
const filtered: SamplingSettings = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.01, repetitionPenalty: 1.1 };

/** SHA-256 of what the engine computes, by deterministic sums, with this compute type. */
export function probeDigest(compute: ComputeType): string {
  const hash = createHash('sha256');
  for (const spec of [siluDecoder(), geluDecoder()]) {
    const trainer = createTrainer(spec, { compute, deterministic: true, threads: 2, trainable: true });
    try {
      fillWeights(trainer);
      decodeInto(hash, trainer);
      trainInto(hash, trainer);
    } finally {
      trainer.close();
    }
  }
  rowsInto(hash);
  return hash.digest('hex');
}

/** Whole multiples of 2^-17 around 0, and around 1 for norms. */
function fillWeights(trainer: NativeTrainer): void {
  for (const { name, offset, size } of trainer.parameters) {
    const middle = name.includes('norm') ? 1 : 0;
    trainer.write(
      'weights',
      new Float32Array(size).map((_, i) => middle + unit(offset + i) / 2),
      offset,
    );
  }
  trainer.weightsChanged();
}

/** A number from −½ to ½: the upper bits of a product with an odd number. */
function unit(i: number): number {
  const mixed = Math.imul(i + 1, 0x9e3779b1);
  return ((Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) >>> 16) - 0x8000) / 0x10000;
}

const tokensOf = ({ vocab }: Pick<DecoderSpec, 'vocab'>, count: number, from: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => Math.floor((unit(from + i) + 0.5) * vocab));

/** Three sequences, one of them behind a shared prompt, every token scored. */
function batchOf(spec: DecoderSpec): PackedBatch {
  const tokens_N = tokensOf(spec, 53, 1000);
  return {
    tokens_N,
    cuSeqlens: Int32Array.of(0, 37, 40, 53),
    parents_S: Int32Array.of(-1, -1, 0),
    positions_P: tokens_N.map((_, i) => i),
    targets_P: tokensOf(spec, 53, 2000),
  };
}

function trainInto(hash: Hash, trainer: NativeTrainer): void {
  const { handle, outputs } = trainer.forward(batchOf(trainer.spec), {
    temperature: 0.9,
    wants: ['logProbs', 'entropy', 'sumPiSquared'],
    keep: true,
  });
  trainer.backward(handle, {
    logProbs: outputs.logProbs.map((x) => x / 100),
    entropy: outputs.entropy.map(() => 1 / 1024),
  });
  trainer.step(step);
  hash.update(outputs.logProbs).update(outputs.entropy).update(outputs.sumPiSquared);
  for (const part of stateParts) hash.update(trainer.read(part));
}

function decodeInto(hash: Hash, trainer: NativeTrainer): void {
  const generator = createGenerator(trainer, { maxSeqs: 2, maxModelLen: 64 });
  const random = (sample: number) => ({ seed: [5, 7] as const, draw: 3, sample, turn: 0 });
  generator.submit({
    prompt: tokensOf(trainer.spec, 37, 3000),
    samples: [1, 2].map((key) => ({ key, random: random(key) })),
    sampling: filtered,
    maxNewTokens: 4,
    stopTokens: new Int32Array(0),
  });
  for (let made = generator.step(); made.keys.length > 0; made = generator.step())
    hash.update(made.keys).update(made.tokens).update(made.logProbs).update(made.samplingLogProbs);
  generator.close();
}

/** What the engine does to one row of logits, and to moments so small that some processors are told to drop them. */
function rowsInto(hash: Hash): void {
  const logits_V = new Float32Array(211).map((_, i) => 20 * unit(i));
  hash.update(processLogits(logits_V, filtered, Int32Array.of(3, 5, 3)));
  const { logProb, entropy, sumPiSquared } = logProbEntropy(logits_V, 17, 0.7);
  hash.update(Float64Array.of(logProb, entropy, sumPiSquared));
  for (const vMax of [undefined, new Float32Array(64)]) {
    const [params, grads] = [0, 64].map((from) => new Float32Array(64).map((_, i) => 1e-20 * unit(from + i)));
    const [m, v] = [new Float32Array(64), new Float32Array(64)];
    if (params === undefined || grads === undefined) throw new Error('two arrays were made');
    adamw(params, grads, m, v, step, 3, vMax);
    for (const part of [params, m, v, vMax ?? v]) hash.update(part);
  }
}
