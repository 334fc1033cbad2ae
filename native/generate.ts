/**
 * Generation on a trainer's own weights: continuous batching with paged keys and values, prompts prefilled once per
 * request, sampling with counter-based random bits. The work is native (src/generate*.cpp); here arguments are checked.
 */
import { at } from '../core/at.ts';
import { pagesOfSequence } from './model/memory.ts';
import { InvalidInputError, PauseError } from '../core/errors.ts';
import { modelLimits } from '../core/model-limits.ts';
import { offsetsOf } from '../core/offsets.ts';
import type { DecodedTokens, GenerateRequest, SamplerRoom } from '../core/ports/sampler.ts';
import { native, trainerHandle, type NativeHandle } from './binding.ts';
import { checkSampling, packSampling } from './sampling.ts';
import type { NativeTrainer } from './trainer.ts';

export { logProbEntropy, processLogits, sampleToken } from './sampling.ts';

type Handle = { readonly __nativeGenerator: never };

/** The addon's functions of src/generate_binding.cpp. */
interface GeneratorFunctions {
  generatorOpen(trainer: NativeHandle, maxSeqs: number, maxModelLen: number, kvPages: number): Handle;
  /** Empty, or the reason why the request cannot be served. */
  generatorSubmit(
    handle: Handle,
    prompt: Int32Array,
    keys_S: Int32Array,
    random_S5: Uint32Array,
    prefixes: Int32Array,
    prefixOffsets_S1: Int32Array,
    sampling_5: Float64Array,
    maxNewTokens: number,
    stopTokens: Int32Array,
  ): string;
  generatorStep(handle: Handle): Required<DecodedTokens>;
  generatorAbort(handle: Handle, key: number): void;
  generatorReset(handle: Handle): void;
  generatorStats(handle: Handle): RolloutStats;
  generatorClose(handle: Handle): void;
}

const addon = native<GeneratorFunctions>;

export interface GeneratorOptions extends SamplerRoom {
  /**
   * Pages of 16 positions. Default: enough for every slot at full length. With fewer pages samples wait longer; their
   * results are the same.
   */
  readonly kvPages?: number;
}

/**
 * A generator that reads the weights of a trainer created by `createTrainer`, in place. Call `reset` after they
 * changed. With `deterministic`, the tokens and log-probs of a sample depend only on weights, prompt, settings and
 * random counter.
 */
export function createGenerator(trainer: NativeTrainer, options: GeneratorOptions): NativeGenerator {
  const maxSeqs = positive(options.maxSeqs, 'maxSeqs');
  const maxModelLen = positive(options.maxModelLen, 'maxModelLen', modelLimits.positions);
  const kvPages = positive(options.kvPages ?? maxSeqs * pagesOfSequence({ maxModelLen }), 'kvPages');
  return new NativeGenerator(
    addon().generatorOpen(trainerHandle(trainer), maxSeqs, maxModelLen, kvPages),
    trainer.spec.vocab,
  );
}

/** What a generator is doing. */
export interface RolloutStats {
  readonly live: number;
  readonly waiting: number;
  readonly freeSlots: number;
  readonly kvPagesUsed: number;
  readonly kvPagesTotal: number;
  /** Tokens decoded since the engine was created. */
  readonly decodedTokens: number;
  readonly prefilledTokens: number;
}

/** Continuous batching over slots. */
export class NativeGenerator {
  readonly #handle: Handle;
  readonly #vocab: number;

  constructor(handle: Handle, vocab: number) {
    this.#handle = handle;
    this.#vocab = vocab;
  }

  /**
   * Queues a request; samples enter as slots and KV pages become free. Throws InvalidInputError when it is malformed
   * or can never fit into the cache.
   */
  submit(request: GenerateRequest): void {
    checkRequest(request, this.#vocab);
    const prefixes = request.samples.map((sample) => sample.prefix ?? new Int32Array(0));
    const refusal = addon().generatorSubmit(
      this.#handle,
      request.prompt,
      Int32Array.from(request.samples, (sample) => sample.key),
      Uint32Array.from(request.samples.flatMap(({ random: r }) => [...r.seed, r.draw, r.sample, r.turn])),
      concatenate(prefixes),
      offsetsOf(prefixes.map(({ length }) => length)),
      packSampling(request.sampling),
      request.maxNewTokens,
      request.stopTokens,
    );
    if (refusal !== '') throw new InvalidInputError(`request refused: ${refusal}`);
  }

  /**
   * Admits, prefills and decodes one token for every live sample; empty arrays when idle. Throws PauseError when the
   * logits are not finite: the weights are broken. All samples are dropped.
   */
  step(): Required<DecodedTokens> {
    try {
      return addon().generatorStep(this.#handle);
    } catch (cause) {
      if (!(cause instanceof Error) || !cause.message.includes('not finite')) throw cause;
      throw new PauseError('NonFiniteLogits', cause.message, {
        hint: 'the weights contain NaN or infinities, or overflow in this compute type: try a lower actor.optim.lr, or model.compute_dtype fp32',
        cause,
      });
    }
  }

  /** Drops the sample at once and frees its slot. Unknown keys are ignored. */
  abort(key: number): void {
    addon().generatorAbort(this.#handle, key);
  }

  /** Drops every sample. Call this when the weights have changed. */
  reset(): void {
    addon().generatorReset(this.#handle);
  }

  get stats(): RolloutStats {
    return addon().generatorStats(this.#handle);
  }

  close(): void {
    addon().generatorClose(this.#handle);
  }
}

function checkRequest(request: GenerateRequest, vocab: number): void {
  if (request.prompt.length === 0)
    throw new InvalidInputError('the prompt is empty; generation needs at least one token');
  if (request.samples.length === 0) throw new InvalidInputError('the request has no samples');
  positive(request.maxNewTokens, 'maxNewTokens', modelLimits.positions - request.prompt.length);
  checkTokens(request.prompt, vocab, 'prompt');
  checkSampling(request.sampling);
  for (const { key, prefix } of request.samples) {
    if (!Number.isInteger(key) || key <= 0 || key > 0x7fffffff)
      throw new InvalidInputError(`sample key ${key} is not a positive 31-bit integer`);
    if (prefix !== undefined) checkTokens(prefix, vocab, `prefix of sample ${key}`);
  }
}

function checkTokens(tokens: Int32Array, vocab: number, what: string): void {
  const bad = tokens.find((token) => token < 0 || token >= vocab);
  if (bad !== undefined) throw new InvalidInputError(`the ${what} contains token ${bad}; the vocabulary has ${vocab}`);
}

/** `max`: the largest value whose sums still fit into the engine's 32-bit integers. */
function positive(value: number, name: string, max = 0x7fffffff): number {
  if (Number.isInteger(value) && value > 0 && value <= max) return value;
  throw new InvalidInputError(`${name} must be an integer from 1 to ${max}, got ${value}`);
}

function concatenate(parts: readonly Int32Array[]): Int32Array {
  const offsets = offsetsOf(parts.map(({ length }) => length));
  const whole = new Int32Array(at(offsets, -1));
  parts.forEach((part, i) => whole.set(part, offsets[i]));
  return whole;
}
