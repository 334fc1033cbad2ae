/**
 * The engine's bits: one training step and some decode steps of a tiny model, as digests, for each class of processor.
 * Stored in bits.json; arithmetic.test.ts compares, `npm run record:arithmetic` records again.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateParts } from '../../core/records/state-parts.ts';
import type { EngineOptions } from '../../core/ports/policy.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { createGenerator, engineInfo } from '../index.ts';
import type { EngineInfo, NativeTrainer } from '../index.ts';
import { packageRoot } from '../package-root.ts';
import { batchOf, decoder, trainerOf } from './decoders.ts';

/** Classes of processors, the lowest first, each with the environment that lowers a higher one to it. */
const processorClasses = {
  avx2: { PETREL_ISA: 'avx2' },
  avx512: { PETREL_ISA: 'avx512' },
  avx512_bf16: { PETREL_ISA: 'avx512_bf16' },
  amx: { PETREL_ISA: 'amx' },
} as const;
export type ProcessorClass = keyof typeof processorClasses;
export const classNames = Object.keys(processorClasses) as ProcessorClass[];

/** SHA-256 by what was computed, such as `fp32 deterministic training`. */
export type Bits = Readonly<Record<string, string>>;

export interface StoredBits {
  /** The arithmetic versions that give these bits. */
  readonly versions: Readonly<Record<ComputeType, number>>;
  readonly classes: Readonly<Partial<Record<ProcessorClass, Bits>>>;
}

export const bitsFile = join(packageRoot(), 'native/testing/bits.json');

export function storedBits(): StoredBits {
  return JSON.parse(readFileSync(bitsFile, 'utf8')) as StoredBits;
}

/** What a process says about itself: print-bits.ts. */
export interface PrintedBits {
  readonly info: EngineInfo;
  readonly bits: Bits;
  /** Digests of native/proof/probe.ts, by numeric profile. */
  readonly probes: Bits;
}

/** What a class computes, in a process of its own; undefined when this processor cannot compute it. */
export function printedOf(name: ProcessorClass): PrintedBits | undefined {
  return computable().includes(name) ? printed(processorClasses[name]) : undefined;
}

/** The bits of a class; undefined when this processor cannot compute them. */
export const bitsOf = (name: ProcessorClass): Bits | undefined => printedOf(name)?.bits;

/** The classes that this processor can compute. */
export function computable(): readonly ProcessorClass[] {
  const { isa } = printed({ PETREL_ISA: '' }).info;
  return classNames.slice(0, classNames.indexOf(isa) + 1);
}

/** A class and how tests run it. */
export interface TestedClass {
  readonly name: ProcessorClass;
  /** Words for titles of tests. */
  readonly title: string;
  /** Absent: this processor cannot. */
  readonly env?: Readonly<Record<string, string>>;
}

/** All classes. Where the processor has AVX512_BF16 and no AMX, the products of amx run on tiles in memory. */
export function testedClasses(): readonly TestedClass[] {
  const here = computable();
  return classNames.map((name) => {
    if (here.includes(name)) return { name, title: name, env: processorClasses[name] };
    if (name === 'amx' && here.includes('avx512_bf16'))
      return { name, title: 'amx with tiles in memory', env: { ...processorClasses.amx, PETREL_TILES: 'emulated' } };
    return { name, title: `${name} (skipped: this processor cannot compute it)` };
  });
}

/** The addon reads its environment once, so each class needs a process. */
function printed(environment: Readonly<Record<string, string>>): PrintedBits {
  const stripTypes = join(packageRoot(), 'rewards/host/strip-types.mjs');
  const program = join(packageRoot(), 'native/testing/print-bits.ts');
  const output = execFileSync(process.execPath, ['--import', stripTypes, program], {
    env: { ...process.env, ...environment },
    encoding: 'utf8',
  });
  return JSON.parse(output) as PrintedBits;
}

/** The bits that this process gives, for each compute type that its processor has. */
export function computeBits(): Bits {
  const options: Pick<EngineOptions, 'compute' | 'deterministic'>[] = [
    { compute: 'fp32', deterministic: true },
    { compute: 'fp32', deterministic: false },
    ...(engineInfo().bf16
      ? ([
          { compute: 'bf16', deterministic: true },
          { compute: 'bf16', deterministic: false },
        ] as const)
      : []),
  ];
  return Object.fromEntries(
    options.flatMap((option) => {
      const name = `${option.compute}${option.deterministic ? ' deterministic' : ''}`;
      const trainer = trainerOf(tiny, 11, { ...option, threads: 2 });
      const decoding = decodingDigest(trainer);
      const training = trainingDigest(trainer);
      trainer.close();
      return [
        [`${name} decoding`, decoding],
        [`${name} training`, training],
      ];
    }),
  );
}

/** Widths of whole tiles, and odd ones. */
const tiny = decoder({
  hidden: 64,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  ffn: 152,
  vocab: 99,
  windows: [0, 19],
  qkNorm: true,
  qkvBias: true,
});

/** One optimiser step on 118 tokens: log-probs, entropies, then weights and both moments. */
function trainingDigest(trainer: NativeTrainer): string {
  const batch = batchOf(tiny, [70, 3, 45], 11);
  const {
    handle,
    outputs: { logProbs: logProbs_P, entropy: entropy_P },
  } = trainer.forward(batch, { temperature: 0.9, wants: ['logProbs', 'entropy'], keep: true });
  trainer.backward(handle, { logProbs: logProbs_P.map((x) => x / 100), entropy: entropy_P.map(() => 0.001) });
  trainer.step({ lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 });
  return digestOf(logProbs_P, entropy_P, ...stateParts.map((part) => trainer.read(part)));
}

/** A prompt of 70 tokens is prefilled, and two samples of it decode eight tokens each. */
function decodingDigest(trainer: NativeTrainer): string {
  const generator = createGenerator(trainer, { maxSeqs: 4, maxModelLen: 96 });
  const random = (sample: number) => ({ seed: [5, 7] as const, draw: 3, sample, turn: 0 });
  generator.submit({
    prompt: batchOf(tiny, [70], 12).tokens_N,
    samples: [1, 2].map((key) => ({ key, random: random(key) })),
    sampling: { temperature: 0.8, topK: 40, topP: 0.95, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 8,
    stopTokens: new Int32Array(0),
  });
  const parts: NumberArray[] = [];
  for (let step = generator.step(); step.keys.length > 0; step = generator.step())
    parts.push(step.keys, step.tokens, step.logProbs, step.samplingLogProbs);
  generator.close();
  return digestOf(...parts);
}

type NumberArray = Float32Array | Int32Array;

function digestOf(...parts: readonly NumberArray[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}
