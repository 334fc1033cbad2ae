/**
 * One optimiser step as the trainer makes it: forward, clipped policy loss with an importance ratio on every token,
 * backward, gradient clipping, AdamW. Old log-probs are those of the first step.
 */
import type { AdamW, PackedBatch } from '../core/ports.ts';
import { actorTotal } from '../core/rl/actor-total.ts';
import type { NativeTrainer } from '../native/index.ts';
import type { BenchSettings } from './measurement.ts';
import { openModel, randomTokens, uniform } from './model.ts';
import type { Size } from './sizes.ts';

/** torch's defaults, but for the learning rate. */
const adamw: AdamW = { lr: 1e-5, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, maxGradNorm: 1 };

export class TrainingStep {
  /** Tokens of a step. */
  readonly tokens: number;
  readonly trainer: NativeTrainer;
  readonly #batch: PackedBatch;
  readonly #rows: { readonly offsets_S1: Int32Array; readonly mask_T: Float32Array };
  readonly #advantages_T: Float32Array;
  #old_T: Float32Array | undefined;

  constructor(size: Size, settings: BenchSettings) {
    const { batch, length } = size;
    this.tokens = batch * length;
    this.trainer = openModel(size, settings, true);
    this.#batch = packedRows(randomTokens(this.tokens, size.shape.vocab_size, 2), batch, length);
    const scored = batch * (length - 1);
    this.#rows = {
      offsets_S1: Int32Array.from({ length: batch + 1 }, (_, s) => s * (length - 1)),
      mask_T: new Float32Array(scored).fill(1),
    };
    const random = uniform(3);
    this.#advantages_T = Float32Array.from({ length: scored }, () => (random() - 0.5) * Math.sqrt(12));
  }

  take(): void {
    const { handle, logProbs_P } = this.trainer.forward(this.#batch, { temperature: 1, entropy: false, keep: true });
    this.#old_T ??= logProbs_P.slice();
    const { dLogProb_T } = actorTotal(
      { rows: this.#rows, logProb_T: logProbs_P, oldLogProb_T: this.#old_T, advantages_T: this.#advantages_T },
      {
        lossMode: 'vanilla',
        lossAggMode: 'token-mean',
        totals: { dpSize: 1, batchNumTokens: logProbs_P.length, globalBatchSize: this.#rows.offsets_S1.length - 1 },
        clipRatio: 0.2,
        clipRatioLow: 0.2,
        clipRatioHigh: 0.2,
        clipRatioC: 3,
        entropyCoeff: 0,
      },
    );
    this.trainer.backward(handle, Float32Array.from(dLogProb_T));
    const { taken } = this.trainer.step(adamw);
    if (!taken) throw new Error('the bench step gave a gradient that is not finite');
  }

  close(): void {
    this.trainer.close();
  }
}

/** Rows of equal length side by side; every token but the first of a row is scored. */
function packedRows(tokens_N: Int32Array, batch: number, length: number): PackedBatch {
  const positions_P = Int32Array.from(
    { length: batch * (length - 1) },
    (_, p) => Math.floor(p / (length - 1)) * length + (p % (length - 1)),
  );
  return {
    tokens_N,
    cuSeqlens: Int32Array.from({ length: batch + 1 }, (_, s) => s * length),
    positions_P,
    targets_P: positions_P.map((at) => tokens_N[at + 1] ?? 0),
  };
}
