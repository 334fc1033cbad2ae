/** Tiny random models, and a driver that runs a generator until it is idle. */
import { at } from '../../core/at.ts';
import type { DecoderSpec } from '../model/spec.ts';
import type { EngineOptions } from '../../core/ports/policy.ts';
import type { GenerateRequest } from '../../core/ports/sampler.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import type { NativeGenerator } from '../generate.ts';
import type { NativeTrainer } from '../trainer.ts';
import type { Shape } from './decoders.ts';
import { createTrainer } from '../trainer.ts';

/** Uniform numbers in [0, 1) from a 32-bit seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function randomInteger(random: () => number, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

/** A decoder with unusual sizes: a vocabulary from 7, head width from 2, groups of any size, windows on some layers. */
export function randomShape(random: () => number): Partial<Shape> {
  const integer = (from: number, to: number) => randomInteger(random, from, to);
  const kvHeads = integer(1, 3);
  const headDim = 2 * integer(1, 17);
  const layers = integer(1, 3);
  return {
    layers,
    hidden: integer(5, 70),
    heads: kvHeads * integer(1, 4),
    kvHeads,
    headDim,
    ffn: integer(5, 90),
    vocab: integer(7, 300),
    tied: random() < 0.5,
    qkvBias: random() < 0.5,
    outBias: random() < 0.3,
    mlpBias: random() < 0.3,
    qkNorm: random() < 0.5,
    fused: random() < 0.3,
    normsAround: random() < 0.3,
    activation: random() < 0.3 ? 'geluTanh' : 'silu',
    softcap: random() < 0.3 ? 5 : 0,
    windows: Array.from({ length: layers }, () => (random() < 0.4 ? integer(1, 40) : 0)),
    maxPositions: 1024,
  };
}

export const DETERMINISTIC: EngineOptions = { compute: 'fp32', deterministic: true, threads: 2 };

export function randomModel(
  spec: DecoderSpec,
  seed: number,
  options: EngineOptions = DETERMINISTIC,
  spread = 0.8,
): NativeTrainer {
  const trainer = createTrainer(spec, { ...options, trainable: false });
  const random = randomNumbers(seed);
  trainer.write(
    'weights',
    new Float32Array(trainer.elements).map(() => (random() - 0.5) * spread),
  );
  trainer.weightsChanged();
  return trainer;
}

export const PLAIN: SamplingSettings = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

export interface Response {
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly samplingLogProbs: number[];
  finish: number;
}

/** Runs one step and adds its results to the collected ones. */
export function stepInto(responses: Map<number, Response>, engine: NativeGenerator): number {
  const step = engine.step();
  step.keys.forEach((key, i) => {
    const response = responses.get(key) ?? { tokens: [], logProbs: [], samplingLogProbs: [], finish: 0 };
    responses.set(key, response);
    response.tokens.push(at(step.tokens, i));
    response.logProbs.push(at(step.logProbs, i));
    response.samplingLogProbs.push(at(step.samplingLogProbs, i));
    response.finish = at(step.finish, i);
  });
  return step.keys.length;
}

export function isIdle({ live, waiting }: { live: number; waiting: number }): boolean {
  return live === 0 && waiting === 0;
}

export function runUntilIdle(engine: NativeGenerator, responses = new Map<number, Response>()): Map<number, Response> {
  while (!isIdle(engine.stats)) stepInto(responses, engine);
  return responses;
}

export function generate(engine: NativeGenerator, requests: readonly GenerateRequest[]): Map<number, Response> {
  for (const request of requests) engine.submit(request);
  return runUntilIdle(engine);
}

/** A request of `n` samples with keys from `firstKey` on. */
export function request(
  prompt: readonly number[],
  firstKey: number,
  n: number,
  more: Partial<GenerateRequest> = {},
): GenerateRequest {
  const sample = (key: number) => ({ key, random: { seed: [11, 12] as const, draw: key, sample: key % 5, turn: 0 } });
  return {
    prompt: Int32Array.from(prompt),
    samples: Array.from({ length: n }, (_, i) => sample(firstKey + i)),
    sampling: PLAIN,
    maxNewTokens: 20,
    stopTokens: new Int32Array(0),
    ...more,
  };
}

export function randomPrompt(random: () => number, vocab: number, longest: number): number[] {
  return Array.from({ length: randomInteger(random, 1, longest) }, () => randomInteger(random, 0, vocab - 1));
}
