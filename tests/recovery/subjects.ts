/** The runs that are disturbed: what each adds to the recipe of the suite. */
import type { Tree } from '../../core/recipe/index.ts';

export const subjects = {
  /** GRPO with a KL loss and an entropy bonus. */
  grpo: {},
  /** PPO: a critic of its own, that learns alone at first. */
  critic: { algorithm: { adv_estimator: 'gae', lam: 0.95 }, trainer: { critic_warmup: 2 } },
  /** Groups with equal scores are replaced by other prompts. */
  'dynamic sampling': { algorithm: { filter_groups: { enable: true, metric: 'acc' } } },
  /** The coefficient of the KL penalty in the reward follows the KL. */
  'adaptive KL': {
    algorithm: {
      use_kl_in_reward: true,
      kl_ctrl: { type: 'adaptive', kl_coef: 0.2, target_kl: 0.01, horizon: 100 },
    },
  },
  /** Prompts that were solved are passed over. */
  curriculum: { data: { train_max_samples: 6, curriculum: { enable: true, metric: 'acc', solved: 0.5, revisit: 3 } } },
  /** An implicit reward model that is trained beside the policy (PRIME). */
  'reward model': { algorithm: { adv_estimator: 'prime' } },
  /** Counts of successes of each prompt, by which prompts are chosen, and their last responses. */
  spo: { algorithm: { adv_estimator: 'spo' }, rollout: { n: 1 }, data: { train_max_samples: 10, gen_batch_size: 6 } },
  /** Greedy responses beside the sampled ones. */
  remax: { algorithm: { adv_estimator: 'remax' } },
} as const satisfies Readonly<Record<string, Tree>>;
export type Subject = keyof typeof subjects;
export const subjectNames = Object.keys(subjects) as Subject[];
