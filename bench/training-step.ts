/**
 * One optimiser step as the trainer does it: forward, clipped policy loss with an importance ratio on every scored
 * token, backward, gradient clipping, AdamW. Old log-probs are those of the first step.
 */
import type { AdamW, PackedBatch } from '../core/ports/policy.ts';
import { actorTotal } from '../core/rl/actor-total.ts';
import type { NativeTrainer } from '../native/index.ts';
import type { BenchSettings } from './measurement.ts';
import { openModel, randomTokens, uniform } from './model.ts';
import type { Groups, Size } from './sizes.ts';

/** torch's defaults, except for the learning rate. */
const adamw: AdamW = { lr: 1e-5, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, maxGradNorm: 1 };

/** The sequences of a step. They are equally long. */
export interface StepSequences {
  readonly sequences: number;
  readonly length: number;
  /** Tokens at the start of a sequence that are not scored, at least 1. */
  readonly promptTokens: number;
  /** Consecutive sequences that have the same prompt. */
  readonly responses: number;
  /** Sequences of one forward and backward pass. */
  readonly sequencesPerPass: number;
}

/** Every token but the first of a sequence is scored, in one pass. */
const plainStep = ({ batch, length }: Size): StepSequences => ({
  sequences: batch,
  length,
  promptTokens: 1,
  responses: 1,
  sequencesPerPass: batch,
});

/** Prompts with several responses each; only responses are scored. */
export const stepOfGroups = (groups: Groups): StepSequences => ({
  ...groups,
  sequences: groups.prompts * groups.responses,
  length: groups.promptTokens + groups.responseTokens,
});

export class TrainingStep {
  /** Tokens of a step; a prompt counts once for each of its responses. */
  readonly tokens: number;
  readonly trainer: NativeTrainer;
  readonly #step: StepSequences;
  readonly #passes: readonly Pass[];

  constructor(size: Size, settings: BenchSettings, step = plainStep(size)) {
    this.tokens = step.sequences * step.length;
    this.trainer = openModel(size, settings, true);
    this.#step = step;
    this.#passes = passesOf(step, size.shape.vocab_size);
  }

  take(): void {
    for (const pass of this.#passes) this.#accumulate(pass);
    const { taken } = this.trainer.step(adamw);
    if (!taken) throw new Error('the bench step gave a gradient that is not finite');
  }

  close(): void {
    this.trainer.close();
  }

  #accumulate(pass: Pass): void {
    const { sequences, length, promptTokens } = this.#step;
    const {
      handle,
      outputs: { logProbs: logProbs_P },
    } = this.trainer.forward(pass.batch, { temperature: 1, wants: ['logProbs'], keep: true });
    pass.old_T ??= logProbs_P.slice();
    const { dLogProb_T } = actorTotal(
      { rows: pass.rows, logProb_T: logProbs_P, oldLogProb_T: pass.old_T, advantages_T: pass.advantages_T },
      {
        lossMode: 'vanilla',
        lossAggMode: 'token-mean',
        totals: { dpSize: 1, batchNumTokens: sequences * (length - promptTokens), globalBatchSize: sequences },
        clipRatio: 0.2,
        clipRatioLow: 0.2,
        clipRatioHigh: 0.2,
        clipRatioC: 3,
        entropyCoeff: 0,
      },
    );
    this.trainer.backward(handle, { logProbs: Float32Array.from(dLogProb_T) });
  }
}

/** One forward and backward pass; `old_T` is filled by the first step. */
interface Pass {
  readonly batch: PackedBatch;
  readonly rows: { readonly offsets_S1: Int32Array; readonly mask_T: Float32Array };
  readonly advantages_T: Float32Array;
  old_T?: Float32Array;
}

function passesOf(step: StepSequences, vocab: number): readonly Pass[] {
  const { sequences, sequencesPerPass, length, promptTokens } = step;
  const scoredEach = length - promptTokens;
  const random = uniform(3);
  return Array.from({ length: Math.ceil(sequences / sequencesPerPass) }, (_, i) => {
    const first = i * sequencesPerPass;
    const count = Math.min(sequencesPerPass, sequences - first);
    const scored = count * scoredEach;
    return {
      batch: packedSequences(step, first, count, vocab),
      rows: {
        offsets_S1: Int32Array.from({ length: count + 1 }, (_, s) => s * scoredEach),
        mask_T: new Float32Array(scored).fill(1),
      },
      advantages_T: Float32Array.from({ length: scored }, () => (random() - 0.5) * Math.sqrt(12)),
    };
  });
}

/**
 * Sequences `first` … `first + count`. Those with the same prompt share one copy of it, as in an update. A token is
 * scored at the position before it.
 */
function packedSequences(
  { length, promptTokens, responses }: StepSequences,
  first: number,
  count: number,
  vocab: number,
): PackedBatch {
  const tokens: number[] = [];
  const cuSeqlens = [0];
  const parents: number[] = [];
  const positions: number[] = [];
  const targets: number[] = [];
  const add = (segment: Iterable<number>, parent: number): number => {
    const start = tokens.length;
    tokens.push(...segment);
    cuSeqlens.push(tokens.length);
    parents.push(parent);
    return start;
  };
  let shared = { group: -1, index: -1, start: 0 };
  for (let s = 0; s < count; s++) {
    const group = Math.floor((first + s) / responses);
    const response = randomTokens(length - promptTokens, vocab, 1_000_000 + first + s);
    if (group !== shared.group) {
      const index = parents.length;
      const prompt = randomTokens(promptTokens, vocab, 1 + group);
      shared = { group, index, start: add(responses === 1 ? [...prompt, ...response] : prompt, -1) };
    }
    const end = shared.start + promptTokens;
    const from = responses === 1 ? end : add(response, shared.index);
    response.forEach((token, t) => {
      positions.push(t === 0 ? end - 1 : from + t - 1);
      targets.push(token);
    });
  }
  return {
    tokens_N: Int32Array.from(tokens),
    cuSeqlens: Int32Array.from(cuSeqlens),
    ...(responses > 1 && { parents_S: Int32Array.from(parents) }),
    positions_P: Int32Array.from(positions),
    targets_P: Int32Array.from(targets),
  };
}
