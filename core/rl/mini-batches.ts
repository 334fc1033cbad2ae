/**
 * How an update iterates over its batch (verl: `ppo_mini_batch_size`, `ppo_epochs`, `shuffle`, `data_loader_seed`).
 * Every epoch visits all prompts once, in mini-batches of `promptsPerMiniBatch` prompts with all their samples; each
 * mini-batch is one optimiser step. Groups stay together. The last mini-batch may be smaller.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { rowsByGroup } from './advantages/groups.ts';
import { permutedRange } from './permutation.ts';

export interface MiniBatchPlan {
  readonly promptsPerMiniBatch: number;
  readonly epochs: number;
  readonly shuffle: boolean;
  /** Key of the shuffle, e.g. [data_loader_seed, iteration]; the epoch is added. */
  readonly seed: readonly number[];
}

export interface MiniBatch {
  readonly epoch: number;
  /** Sample indices: groups in shuffled order, samples of a group ascending. */
  readonly samples: readonly number[];
}

/** One entry per optimiser step. `groups_S`: the prompt of each sample. */
export function miniBatches(groups_S: ArrayLike<unknown>, plan: MiniBatchPlan): MiniBatch[] {
  if (!(plan.promptsPerMiniBatch >= 1)) throw new InvalidInputError('ppo_mini_batch_size must be at least 1');
  const groups = [...rowsByGroup(groups_S).values()];
  const steps: MiniBatch[] = [];
  for (let epoch = 0; epoch < plan.epochs; epoch++) {
    const order = plan.shuffle ? permutedRange(groups.length, [...plan.seed, epoch]) : groups.map((_, g) => g);
    for (let from = 0; from < order.length; from += plan.promptsPerMiniBatch) {
      const chosen = order.slice(from, from + plan.promptsPerMiniBatch);
      steps.push({ epoch, samples: chosen.flatMap((g) => at(groups, g)) });
    }
  }
  return steps;
}
