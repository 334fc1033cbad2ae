/** The runs that are disturbed: what each adds to the recipe of the suite. */
import { join } from 'node:path';
import type { Tree } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { RunKind } from '../../core/run-kinds.ts';
import { packageRoot } from '../../infra/home.ts';
import type { LoopInputs } from '../loop-inputs.ts';

/** Two forms of one reward model: Safetensors and ONNX. */
const classifiers = join(packageRoot(), 'tests/onnx-classifier');
const rewardModel = (form: 'llama' | 'llama-onnx'): Tree => ({ enable: true, path: join(classifiers, form) });

/** Pairs of given responses. */
const pairs =
  (kind: 'dpo' | 'rm') =>
  (inputs: LoopInputs): Tree => ({
    kind,
    data: { val_files: inputs.validationPairs, train_batch_size: 6, max_length: 12 },
    actor: { ppo_max_token_len_per_gpu: 40, optim: { lr: 0.01, weight_decay: 0 } },
    trainer: { test_freq: 3, val_before_train: true },
  });

const correction = { rollout_is: 'token', rollout_rs: 'seq_mean_k1,token_k3', rollout_rs_threshold: '0.5_2,0.1' };

export const subjects = {
  /** GRPO with a KL loss and an entropy bonus. */
  grpo: {},
  /** PPO: a critic of its own, that learns alone at first. */
  critic: { algorithm: { adv_estimator: 'gae', lam: 0.95 }, trainer: { critic_warmup: 2 } },
  /** GRPO, and a critic that learns the returns although nobody reads its values. */
  'unread critic': { critic: { enable: true, optim: { lr: 0.01, weight_decay: 0 } } },
  /** PPO with the critic, with a trainer of its own for the critic. */
  'critic on its own trainer': {
    algorithm: { adv_estimator: 'gae', lam: 0.95 },
    critic: { own_trainer: true },
    trainer: { critic_warmup: 2 },
  },
  /** Groups with equal scores are replaced by other prompts. */
  'dynamic sampling': { algorithm: { filter_groups: { enable: true, metric: 'acc' } } },
  /** Groups that are neither too easy nor too hard are trained on first (PRIME). */
  oversampling: { data: { oversample_factor: 2, filter_accuracy: true, filter_truncate: true } },
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
  /** Importance weights and rejection by old log-probs. */
  'rollout correction': { algorithm: { rollout_correction: correction } },
  /** The same in every step, against the log-probs of the rollout. */
  'bypassed correction': {
    actor: { policy_loss: { loss_mode: 'bypass_mode' } },
    algorithm: { rollout_correction: { ...correction, bypass_mode: true, loss_type: 'reinforce' } },
  },
  /** A penalty for long responses. */
  overlong: { reward: { reward_manager: { name: 'dapo' }, overlong_buffer: { enable: true, len: 6 } } },
  /** Two scores that are normalised by themselves. */
  gdpo: { algorithm: { adv_estimator: 'gdpo', gdpo_reward_keys: ['score', 'acc'] } },
  /** Pairs of the policy's own responses. */
  'online DPO': { rollout: { n: 2 }, actor: { policy_loss: { loss_mode: 'online_dpo' } } },
  /** Samples are drawn again by their rewards. */
  'PF-PPO': { algorithm: { adv_estimator: 'gae', lam: 0.95, use_pf_ppo: true } },
  /** A model of log Z of each prompt that is trained beside the policy. */
  flowrl: { actor: { policy_loss: { loss_mode: 'flowrl', flowrl_beta_coef: 2 } } },
  /** The most probable tokens of a teacher, another model. */
  distillation: (inputs: LoopInputs) => ({
    distillation: {
      enabled: true,
      teacher_model: { model_path: inputs.teacher },
      distillation_loss: { loss_mode: 'forward_kl_topk', topk: 3 },
    },
  }),
  /** A reward model that was trained before, and is frozen. */
  'frozen reward model': { reward: { reward_model: rewardModel('llama') } },
  /** The same in ONNX. */
  'ONNX reward model': { deterministic: 'replay', reward: { reward_model: rewardModel('llama-onnx') } },
  dpo: pairs('dpo'),
  rm: pairs('rm'),
} as const satisfies Readonly<Record<string, Tree | ((inputs: LoopInputs) => Tree)>>;
export type Subject = keyof typeof subjects;
export const subjectNames = Object.keys(subjects) as Subject[];

/** The kind of a subject's run. */
export const kindOf = (subject: Subject): RunKind => (subject === 'dpo' || subject === 'rm' ? subject : 'rl');

/** Does the subject's run sample responses? Otherwise it needs only trainers. */
export const samples = (subject: Subject): boolean => samplesResponses(kindOf(subject));

/** What a subject adds to the recipe of the suite, whose files are in `inputs`. */
export function additionsOf(subject: Subject, inputs: LoopInputs): Tree {
  const additions: Tree | ((inputs: LoopInputs) => Tree) = subjects[subject];
  return typeof additions === 'function' ? additions(inputs) : additions;
}
