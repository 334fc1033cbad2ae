/** What each head gives for sequences, and the losses that the reference cases differentiate. */
import type { HeadKind } from '../../../core/ports/policy.ts';
import type { NativeTrainer } from '../../../native/index.ts';
import type { Outcome } from '../types.ts';
import { packed, unpacked, type Ragged } from './sequences.ts';

export interface Objective {
  /** The loss with the case's coefficients; its gradient is added to the trainer's. */
  readonly lossAndBackward: (
    trainer: NativeTrainer,
    sequences: Ragged,
    temperature: number,
    coefficients: Readonly<Record<string, unknown>>,
  ) => number;
  /** The outputs after training, under their name in the case. */
  readonly after: (trainer: NativeTrainer, sequences: Ragged) => Outcome;
}

export const objectiveOf = (trainer: NativeTrainer): Objective => objectives[trainer.spec.head.kind];

const objectives: Readonly<Record<HeadKind, Objective>> = {
  /** Σ c·logprob + Σ e·entropy. */
  tokens: {
    lossAndBackward(trainer, sequences, temperature, { c, e }) {
      const { handle, logprobs, entropy } = tokensOf(trainer, sequences, temperature, true);
      const [forLogProbs, forEntropy] = [c as Ragged, e as Ragged];
      trainer.backward(handle, {
        logProbs: Float32Array.from(forLogProbs.flatMap((row) => [...row, 0])),
        entropy: Float32Array.from(forEntropy.flat()),
      });
      return weighted(forLogProbs, logprobs) + weighted(forEntropy, entropy);
    },
    after: (trainer, sequences) => ({ logprobs_after: tokensOf(trainer, sequences, 1, false).logprobs }),
  },
  /** Σ c·score. */
  scores: {
    lossAndBackward(trainer, sequences, _temperature, { c }) {
      const { handle, scores } = scoresForward(trainer, sequences, true);
      trainer.backward(handle, { scores: Float32Array.from((c as Ragged).flat()) });
      return weighted(c as Ragged, scores);
    },
    after: (trainer, sequences) => ({ scores_after: scoresOf(trainer, sequences) }),
  },
  /** Σ w·(value − target)² / 2. */
  values: {
    lossAndBackward(trainer, sequences, _temperature, { w, target }) {
      const [weights, targets] = [(w as Ragged).flat(), (target as Ragged).flat()];
      const { handle, outputs } = trainer.forward(packed(sequences), { temperature: 1, wants: ['values'], keep: true });
      const gap = outputs.values.map((value, i) => value - targets[i]!);
      trainer.backward(handle, { values: gap.map((x, i) => weights[i]! * x) });
      return gap.reduce((sum, x, i) => sum + 0.5 * weights[i]! * x * x, 0);
    },
    after: (trainer, sequences) => ({ values_after: valuesOf(trainer, sequences) }),
  },
};

/** Log-probs of every next token and entropies at every position. The last log-prob is for token 0 and is not used. */
export function tokensOf(trainer: NativeTrainer, sequences: Ragged, temperature: number, keep: boolean) {
  const { handle, outputs } = trainer.forward(packed(sequences), { temperature, wants: ['logProbs', 'entropy'], keep });
  return {
    handle,
    logprobs: unpacked(sequences, outputs.logProbs, -1),
    entropy: unpacked(sequences, outputs.entropy, 0),
  };
}

/** The scores of each sequence, read at its last token. */
export function scoresOf(trainer: NativeTrainer, sequences: Ragged): number[][] {
  return scoresForward(trainer, sequences, false).scores;
}

function scoresForward(trainer: NativeTrainer, sequences: Ragged, keep: boolean) {
  const { targets_P: _, ...batch } = packed(sequences);
  const positions_P = batch.cuSeqlens.subarray(1).map((end) => end - 1);
  const { handle, outputs } = trainer.forward({ ...batch, positions_P }, { temperature: 1, wants: ['scores'], keep });
  const labels = outputs.scores.length / sequences.length;
  return {
    handle,
    scores: sequences.map((_, s) => Array.from(outputs.scores.subarray(s * labels, (s + 1) * labels))),
  };
}

/** A value at every position. */
export function valuesOf(trainer: NativeTrainer, sequences: Ragged): number[][] {
  const { outputs } = trainer.forward(packed(sequences), { temperature: 1, wants: ['values'], keep: false });
  return unpacked(sequences, outputs.values, 0);
}

function weighted(weights: Ragged, values: Ragged): number {
  const flat = values.flat();
  return weights.flat().reduce((sum, w, i) => sum + w * flat[i]!, 0);
}
