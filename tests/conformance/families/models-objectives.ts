/** What each head gives for sequences, and the losses that the reference cases differentiate. */
import { at } from '../../../core/at.ts';
import { forwardOne } from '../../../core/ports/one-lane.ts';
import type { HeadKind, PackedBatch, PolicyEngine, ScoringModel } from '../../../core/ports/policy.ts';
import type { Outcome } from '../types.ts';
import { packed, unpacked, type Ragged } from './sequences.ts';

export interface Objective {
  /** The loss with the case's coefficients; its gradient is added to the model's. */
  readonly lossAndBackward: (
    model: PolicyEngine,
    sequences: Ragged,
    temperature: number,
    coefficients: Readonly<Record<string, unknown>>,
  ) => Promise<number>;
  /** The outputs after training, under their name in the case. */
  readonly after: (model: PolicyEngine, sequences: Ragged) => Promise<Outcome>;
}

export const objectiveOf = ({ head }: PolicyEngine): Objective => objectives[head];

const objectives: Readonly<Record<HeadKind, Objective>> = {
  /** Σ c·logprob + Σ e·entropy. */
  tokens: {
    async lossAndBackward(model, sequences, temperature, { c, e }) {
      const { handle, logprobs, entropy } = await tokensOf(model, sequences, temperature, true);
      const [forLogProbs, forEntropy] = [c as Ragged, e as Ragged];
      const gradients = {
        logProbs: Float32Array.from(forLogProbs.flatMap((row) => [...row, 0])),
        entropy: Float32Array.from(forEntropy.flat()),
      };
      await model.backward([{ handle, gradients }]);
      return weighted(forLogProbs, logprobs) + weighted(forEntropy, entropy);
    },
    after: async (model, sequences) => ({
      logprobs_after: (await tokensOf(model, sequences, 1, false)).logprobs,
    }),
  },
  /** Σ c·score. */
  scores: {
    async lossAndBackward(model, sequences, _temperature, { c }) {
      const { handle, scores } = await scoresForward(model, sequences, true);
      await model.backward([{ handle, gradients: { scores: Float32Array.from((c as Ragged).flat()) } }]);
      return weighted(c as Ragged, scores);
    },
    after: async (model, sequences) => ({ scores_after: await scoresOf(model, sequences) }),
  },
  /** Σ w·(value − target)² / 2. */
  values: {
    async lossAndBackward(model, sequences, _temperature, { w, target }) {
      const [weights, targets] = [(w as Ragged).flat(), (target as Ragged).flat()];
      const batch = packed(sequences);
      const { handle, outputs } = await forwardOne(model, batch, { temperature: 1, wants: ['values'], keep: true });
      const gap = outputs.values.map((value, i) => value - at(targets, i));
      await model.backward([{ handle, gradients: { values: gap.map((x, i) => at(weights, i) * x) } }]);
      return gap.reduce((sum, x, i) => sum + 0.5 * at(weights, i) * x * x, 0);
    },
    after: async (model, sequences) => ({ values_after: await valuesOf(model, sequences) }),
  },
};

/** Log-probs of every next token and entropies at every position. The last log-prob is for token 0 and is not used. */
export async function tokensOf(model: ScoringModel, sequences: Ragged, temperature: number, keep: boolean) {
  const wants = ['logProbs', 'entropy'] as const;
  const { handle, outputs } = await forwardOne(model, packed(sequences), { temperature, wants, keep });
  return {
    handle,
    logprobs: unpacked(sequences, outputs.logProbs, -1),
    entropy: unpacked(sequences, outputs.entropy, 0),
  };
}

/** The scores of each sequence, read at its last token. */
export async function scoresOf(model: PolicyEngine, sequences: Ragged): Promise<number[][]> {
  return (await scoresForward(model, sequences, false)).scores;
}

async function scoresForward(model: PolicyEngine, sequences: Ragged, keep: boolean) {
  const { targets_P: _, ...batch } = packed(sequences);
  const positions_P = batch.cuSeqlens.subarray(1).map((end) => end - 1);
  const lasts = { ...batch, positions_P };
  const { handle, outputs } = await forwardOne(model, lasts, { temperature: 1, wants: ['scores'], keep });
  const labels = outputs.scores.length / sequences.length;
  return {
    handle,
    scores: sequences.map((_, s) => Array.from(outputs.scores.subarray(s * labels, (s + 1) * labels))),
  };
}

/** A value at every position. */
export async function valuesOf(model: PolicyEngine, sequences: Ragged): Promise<number[][]> {
  const batch = packed(sequences);
  const { outputs } = await forwardOne(model, batch, { temperature: 1, wants: ['values'], keep: false });
  return unpacked(sequences, outputs.values, 0);
}

/** Rows of logits [vocab], one per position of the batch. */
export async function logitRows(model: ScoringModel, batch: PackedBatch): Promise<Float32Array[]> {
  const { outputs } = await forwardOne(model, batch, { temperature: 1, wants: ['logits'], keep: false });
  return Array.from(batch.positions_P, (_, p) => outputs.logits.subarray(p * model.vocab, (p + 1) * model.vocab));
}

function weighted(weights: Ragged, values: Ragged): number {
  const flat = values.flat();
  return weights.flat().reduce((sum, w, i) => sum + w * at(flat, i), 0);
}
