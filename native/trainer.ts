import type {
  AdamW,
  DecoderConfig,
  EngineOptions,
  ForwardOptions,
  ForwardResult,
  PackedBatch,
  ParameterInfo,
  StepResult,
  TrainerEngine,
} from '../core/ports.ts';
import { native, rememberHandle, type NativeHandle } from './binding.ts';
import { check, checkBatch, checkConfig, checkForward, checkOptions } from './validate.ts';

/** Options of a model. `trainable: false` leaves out gradients and moments (a reference model). */
export interface TrainerOptions extends EngineOptions {
  readonly trainable: boolean;
}

/**
 * Creates a model in this process with all weights 0. The caller fills `weights` and calls `weightsChanged`. Throws
 * InvalidInputError for an invalid config or options.
 */
export function createTrainer(config: DecoderConfig, options: TrainerOptions): NativeTrainer {
  checkConfig(config);
  checkOptions(options, native().engineInfo().bf16);
  return new NativeTrainer(config, options);
}

/** The CPU engine behind the trainer's port. Usable only on the thread that created it. */
export class NativeTrainer implements TrainerEngine {
  readonly config: DecoderConfig;
  readonly options: TrainerOptions;
  readonly parameters: readonly ParameterInfo[];
  readonly weights: Float32Array;
  readonly grads: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  steps = 0;
  readonly #handle: NativeHandle;
  readonly #scoredOf = new Map<number, number>();

  constructor(config: DecoderConfig, options: TrainerOptions) {
    this.config = config;
    this.options = options;
    this.#handle = native().trainerCreate(config, options);
    rememberHandle(this, this.#handle);
    this.parameters = native().trainerParameters(this.#handle);
    [this.weights, this.grads, this.m, this.v] = native().trainerBuffers(this.#handle);
  }

  weightsChanged(): void {
    native().trainerRefresh(this.#handle);
  }

  forward(batch: PackedBatch, options: ForwardOptions): ForwardResult {
    checkBatch(batch, this.config.vocab);
    checkForward(options);
    check(!options.keep || this.options.trainable, 'this model is not trainable: forward with keep: false');
    const scored = batch.positions_P.length;
    const logProbs_P = new Float32Array(scored);
    const entropy_P = options.entropy ? new Float32Array(scored) : undefined;
    const handle = native().trainerForward(
      this.#handle,
      batch.tokens_N,
      batch.cuSeqlens,
      batch.positions_P,
      batch.targets_P,
      1 / options.temperature,
      options.keep,
      logProbs_P,
      entropy_P,
    );
    if (handle !== 0) this.#scoredOf.set(handle, scored);
    return entropy_P === undefined ? { handle, logProbs_P } : { handle, logProbs_P, entropy_P };
  }

  backward(handle: number, dLogProbs_P: Float32Array, dEntropy_P?: Float32Array): void {
    const scored = this.#scoredOf.get(handle);
    check(scored !== undefined, `no forward pass is kept under handle ${handle}`);
    check(dLogProbs_P.length === scored, `dLogProbs_P must hold ${scored} values, it holds ${dLogProbs_P.length}`);
    check(dEntropy_P === undefined || dEntropy_P.length === scored, `dEntropy_P must hold ${scored} values`);
    this.#scoredOf.delete(handle);
    native().trainerBackward(this.#handle, handle, dLogProbs_P, dEntropy_P);
  }

  discard(handle: number): void {
    if (this.#scoredOf.delete(handle)) native().trainerDiscard(this.#handle, handle);
  }

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
    this.grads.fill(0);
  }

  /** Bytes of memory mapped for activations so far. */
  get activationBytes(): number {
    return native().trainerMemory(this.#handle);
  }

  /** Frees all memory at once; the buffers become empty. Engines that generate from this model must be closed first. */
  close(): void {
    this.#scoredOf.clear();
    native().trainerClose(this.#handle);
  }
}
