/** The small trainings of a soak. Equal recipes give equal bits, so each has one undisturbed reference. */
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { Seeded } from '../recovery/seeded.ts';

export interface Training {
  readonly name: string;
  readonly kind: 'rl' | 'sft';
  readonly iterations: number;
  readonly recipe: Tree;
}

export function trainings(validationFile: string): readonly Training[] {
  const rl = (name: string, iterations: number, recipe: Tree): Training => ({
    name,
    kind: 'rl',
    iterations,
    recipe: mergeTrees(
      { name, data: { max_response_length: 10 }, trainer: { total_training_steps: iterations } },
      recipe,
    ),
  });
  return [
    rl('plain', 6, { trainer: { save_freq: 2 } }),
    rl('steps', 5, {
      data: { val_files: validationFile },
      actor: {
        ppo_mini_batch_size: 2,
        ppo_epochs: 2,
        shuffle: true,
        use_kl_loss: true,
        kl_loss_coef: 0.05,
        entropy_coeff: 0.01,
        optim: { lr_scheduler_type: 'cosine' },
      },
      trainer: { save_freq: 3, test_freq: 2, val_before_train: true },
    }),
    rl('many', 4, {
      data: { train_batch_size: 12, seed: 5 },
      rollout: { n: 3, max_num_seqs: 6 },
      actor: { ppo_mini_batch_size: 6 },
    }),
    {
      name: 'rows',
      kind: 'sft',
      iterations: 6,
      recipe: { name: 'rows', kind: 'sft', trainer: { total_training_steps: 6, save_freq: 2 } },
    },
  ];
}

/** One training, or two in parallel. */
export function chooseTrainings(all: readonly Training[], seeded: Seeded): readonly Training[] {
  return Array.from({ length: seeded.below(3) === 0 ? 2 : 1 }, () => seeded.pick(all));
}
