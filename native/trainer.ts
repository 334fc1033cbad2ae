import type { DecoderSpec } from './model/spec.ts';
import type { PolicyOptions } from '../core/ports/engines.ts';
import type {
  AdamW,
  DifferentiableOutput,
  ForwardOptions,
  ForwardResult,
  OutputGradients,
  OutputArrays,
  OutputName,
  PackedBatch,
  StepResult,
} from '../core/ports/policy.ts';
import type { BlockHash, EngineParameter, WeightsFormat } from '../core/parameters.ts';
import { outputsOfHead } from '../core/ports/policy.ts';
import { publishedBytes } from '../core/records/publications.ts';
import type { stateParts } from '../core/records/state-parts.ts';
import { native, rememberHandle, type NativeHandle } from './binding.ts';
import { digestBytes, digestsBySoftware } from './block-digests.ts';
import { check, checkBatch, checkForward } from '../core/ports/check-batch.ts';
import { checkOptions, checkSpec } from './validate.ts';

/** A flat part of a model's memory: its state, or the gradients. */
export type TrainerPart = NativeStatePart | 'grads';
export type NativeStatePart = (typeof stateParts)[number];

/** Blocks hashed between two calls of `onProgress`. */
const blocksAtOnce = 32;

/**
 * Creates a model in this process with all weights 0. The caller writes them and calls `weightsChanged`. Throws
 * InvalidInputError for an invalid spec or options.
 */
export function createTrainer(spec: DecoderSpec, options: PolicyOptions): NativeTrainer {
  checkSpec(spec);
  checkOptions(options, native().engineInfo().bf16);
  return new NativeTrainer(spec, options);
}

/**
 * A model of this process. Its calls are synchronous and heavy. Usable only on the thread that created it. Its parts
 * lie in memory of the addon, which may be larger than any array of JavaScript: they are copied in and out.
 */
export class NativeTrainer {
  readonly spec: DecoderSpec;
  readonly options: PolicyOptions;
  readonly parameters: readonly EngineParameter[];
  /** Number of fp32 elements of each part. A model that is not trainable has only weights. */
  readonly elements: number;
  /** Optimiser steps taken so far (AdamW's t). */
  steps = 0;
  readonly #handle: NativeHandle;
  /** Positions of the forward passes that are kept, by handle. */
  readonly #scoredOf = new Map<number, number>();

  constructor(spec: DecoderSpec, options: PolicyOptions) {
    this.spec = spec;
    this.options = options;
    this.#handle = native().trainerCreate(spec, options);
    rememberHandle(this, this.#handle);
    this.parameters = native().trainerParameters(this.#handle);
    this.elements = this.parameters.reduce((sum, { size }) => sum + size, 0);
  }

  /** Copies a part's elements from `start` on into `into`, and returns it; default: the whole part. */
  read(part: TrainerPart, start = 0, into: Float32Array = new Float32Array(this.elements - start)): Float32Array {
    native().trainerRead(this.#handle, part, start, into);
    return into;
  }

  /** Replaces a part's elements from `start` on. After the last write to weights, call `weightsChanged`. */
  write(part: TrainerPart, values: Float32Array, start = 0): void {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    native().trainerWrite(this.#handle, part, start * Float32Array.BYTES_PER_ELEMENT, bytes);
  }

  /** A sink that replaces a part's elements from `start` to `end`. It throws RangeError for more bytes than those. */
  writer(part: TrainerPart, start: number, end: number): (bytes: Uint8Array) => void {
    let at = start * Float32Array.BYTES_PER_ELEMENT;
    const last = end * Float32Array.BYTES_PER_ELEMENT;
    return (bytes) => {
      if (at + bytes.byteLength > last)
        throw new RangeError(`${part} ${start}–${end}: ${at + bytes.byteLength - last} bytes too many`);
      native().trainerWrite(this.#handle, part, at, bytes);
      at += bytes.byteLength;
    };
  }

  /** Sets all elements of a part to 0. */
  zero(part: TrainerPart): void {
    native().trainerZero(this.#handle, part);
  }

  weightsChanged(): void {
    native().trainerRefresh(this.#handle);
  }

  /** Throws InvalidInputError for an output that the model's head does not give. */
  forward<Wanted extends OutputName>(batch: PackedBatch, options: ForwardOptions<Wanted>): ForwardResult<Wanted> {
    checkBatch(batch, this.spec.vocab);
    const { kind: head } = this.spec.head;
    checkForward({ head, vocab: this.spec.vocab, outputs: outputsOfHead[head] }, batch, options);
    check(!options.keep || this.options.trainable, 'this model is not trainable: forward with keep: false');
    const scored = batch.positions_P.length;
    const outputs: { -readonly [Name in OutputName]?: OutputArrays[Name] } = {};
    for (const name of options.wants as readonly OutputName[]) {
      const size = scored * this.#width(name, options.topK);
      if (name === 'topTokens' || name === 'expertTokens') outputs[name] = new Int32Array(size);
      else outputs[name] = new Float32Array(size);
    }
    const handle = native().trainerForward(
      this.#handle,
      batch.tokens_N,
      batch.cuSeqlens,
      batch.positions_P,
      batch.targets_P,
      1 / options.temperature,
      options.keep,
      outputs.logProbs,
      outputs.entropy,
      outputs.logits,
      outputs.values ?? outputs.scores,
      batch.parents_S,
      outputs.topTokens,
      outputs.topLogProbs,
      options.topK,
      outputs.sumPiSquared,
    );
    if (handle !== 0) this.#scoredOf.set(handle, scored);
    return { handle, outputs: outputs as Pick<OutputArrays, Wanted> };
  }

  /** Adds d(loss)/d(weights) into grads, given the gradients of outputs. Frees the handle. */
  backward(handle: number, gradients: OutputGradients): void {
    const scored = this.#scoredOf.get(handle);
    check(scored !== undefined, `no forward pass is kept under handle ${handle}`);
    const given = outputsOfHead[this.spec.head.kind];
    for (const [name, values] of Object.entries(gradients) as [DifferentiableOutput, Float32Array | undefined][]) {
      check(values === undefined || given.includes(name), `this model's head gives no ${name}`);
      const size = scored * this.#width(name);
      check(
        values === undefined || values.length === size,
        `the gradient of ${name} must hold ${size} values, it holds ${values?.length}`,
      );
    }
    this.#scoredOf.delete(handle);
    const { logProbs, entropy, values, scores } = gradients;
    native().trainerBackward(this.#handle, handle, logProbs, entropy, values ?? scores);
  }

  /** Numbers of an output per position. */
  #width(name: OutputName, topK = 0): number {
    if (name === 'logits') return this.spec.vocab;
    if (name === 'topTokens' || name === 'topLogProbs') return topK;
    return name === 'scores' && this.spec.head.kind === 'scores' ? this.spec.head.labels : 1;
  }

  discard(handle: number): void {
    if (this.#scoredOf.delete(handle)) native().trainerDiscard(this.#handle, handle);
  }

  /** Clips, updates, zeroes the gradients, refreshes compute copies. Non-finite norm: zeroes the gradients only. */
  step(adamw: AdamW): StepResult {
    check(this.options.trainable, 'this model is not trainable');
    const { lr, beta1, beta2, eps, weightDecay, maxGradNorm } = adamw;
    check(
      [lr, beta1, beta2, eps, weightDecay, maxGradNorm].every((x) => Number.isFinite(x) && x >= 0),
      'AdamW: all settings must be finite and ≥ 0',
    );
    check(beta1 < 1 && beta2 < 1, `AdamW: betas must be below 1, they are ${beta1} and ${beta2}`);
    const [gradNorm, taken] = native().trainerStep(
      this.#handle,
      lr,
      beta1,
      beta2,
      eps,
      weightDecay,
      maxGradNorm,
      this.steps + 1,
    );
    if (taken) this.steps += 1;
    return { gradNorm, taken };
  }

  zeroGrads(): void {
    this.zero('grads');
  }

  /**
   * Digests [blocks][32] of each block of the weights or of a moment, on several threads; SHA-256 only where the
   * processor has instructions for it. `blockBytes` is a multiple of 4. `onProgress` is called after every few blocks.
   */
  blockDigests(part: NativeStatePart, blockBytes: number, hash: BlockHash, onProgress?: () => void): Uint8Array {
    const values = blockBytes / Float32Array.BYTES_PER_ELEMENT;
    const digests = new Uint8Array(Math.ceil(this.elements / values) * digestBytes);
    for (let block = 0; block * digestBytes < digests.length; block += blocksAtOnce) {
      const into = digests.subarray(block * digestBytes, (block + blocksAtOnce) * digestBytes);
      if (!native().trainerDigests(this.#handle, part, block, blockBytes, into, hash)) {
        const count = Math.min(blocksAtOnce * values, this.elements - block * values);
        const read = this.read(part, block * values, new Float32Array(count));
        into.set(digestsBySoftware(new Uint8Array(read.buffer), blockBytes));
      }
      onProgress?.();
    }
    return digests;
  }

  /**
   * Bytes of the weights as they are published (core/records/publications.ts), from `start` on. BF16: of a model in
   * bf16.
   */
  readPublished(format: WeightsFormat, start: number, into: Uint8Array): void {
    native().publishedRead(this.#handle, format, start, into);
  }

  /** A sink for bytes [start, end) of a publication. It throws RangeError for more bytes than those. */
  publishedWriter(format: WeightsFormat, start: number, end: number): (bytes: Uint8Array) => void {
    let at = start;
    return (bytes) => {
      if (at + bytes.byteLength > end)
        throw new RangeError(`${format} ${start}–${end}: ${at + bytes.byteLength - end} bytes too many`);
      native().publishedWrite(this.#handle, format, at, bytes);
      at += bytes.byteLength;
    };
  }

  /** Digests [blocks][32], BLAKE3, of the publication in BF16, on several threads. Of a model in bf16. */
  publishedDigests(blockBytes: number, onProgress?: () => void): Uint8Array {
    const digests = new Uint8Array(Math.ceil(publishedBytes(this.parameters, 'BF16') / blockBytes) * digestBytes);
    for (let block = 0; block * digestBytes < digests.length; block += blocksAtOnce) {
      const into = digests.subarray(block * digestBytes, (block + blocksAtOnce) * digestBytes);
      native().publishedDigests(this.#handle, 'BF16', block, blockBytes, into);
      onProgress?.();
    }
    return digests;
  }

  /** Bytes of memory mapped for activations so far. */
  get activationBytes(): number {
    return native().trainerMemory(this.#handle);
  }

  /** Frees all memory at once. Engines that generate from this model must be closed first. */
  close(): void {
    this.#scoredOf.clear();
    native().trainerClose(this.#handle);
  }
}
