/**
 * Every metric that a run reports, and no other, in one closed table: unit, which way is better, and whether two runs
 * that should be equal must agree on it. verl's names where verl has the metric. tests/integration/metrics.test.ts
 * compares the table with what real runs report, both ways.
 *
 * `{…}` in a name stands for one or more characters without a slash: `critic/score/{stat}`. Only `{source}`, a data
 * source, may contain slashes. docs/look-up/metrics.md shows the table.
 */

export interface MetricInfo {
  readonly name: string;
  /** '' for a pure number. */
  readonly unit: string;
  /** Which way is better; none: neither. */
  readonly direction: 'up' | 'down' | 'none';
  /** reproducible: part of the records' equality; operational: depends on the machine and the hour. */
  readonly kind: 'reproducible' | 'operational';
  readonly doc: string;
}

/** How often the trainer of an iteration loaded the state, and how many iterations it computed again. */
export const restoreMetrics = ['perf/state_loads', 'perf/replayed_iterations'] as const;

type Row = readonly [name: string, unit: string, direction: MetricInfo['direction'], doc: string];

const REPRODUCIBLE: readonly Row[] = [
  ['training/skipped_steps', 'steps', 'down', 'Optimiser steps skipped for a non-finite loss or gradient.'],
  ['training/rollout_probs_diff_valid', '', 'none', '1 when rollout and training log-probs could be compared.'],
  [
    'training/rollout_probs_diff_{stat}',
    '',
    'down',
    'Difference of rollout and training probabilities: max, mean, std.',
  ],
  ['training/rollout_actor_probs_pearson_corr', '', 'up', 'Correlation of rollout and training probabilities.'],
  ['training/samples', 'samples', 'none', 'Samples that the batch trains on.'],
  ['training/failed_samples', 'samples', 'down', 'Samples that could not be scored.'],
  ['training/tokens', 'tokens', 'none', 'Prompt and response tokens of the batch.'],
  ['training/response_tokens', 'tokens', 'none', 'Response tokens of the batch.'],
  [
    'training/groups_without_signal',
    '',
    'down',
    'Share of groups whose responses all have one score: a group estimator learns nothing from them.',
  ],
  ['train/num_gen_batches', '', 'none', 'Dynamic sampling: times that prompts were sampled for the batch.'],
  [
    'training/filtered_groups',
    '',
    'none',
    'Dynamic sampling and oversampling: groups that were left out by the filter.',
  ],
  [
    'training/surplus_groups',
    '',
    'down',
    'Dynamic sampling and oversampling: groups that were left out because the batch was full.',
  ],
  ['training/drawn_samples', 'samples', 'none', 'PF-PPO: different samples among those that were drawn again.'],
  ['critic/baselines/mean', '', 'none', 'Mean score of the greedy responses, one to each prompt; estimator remax.'],
  [
    'rollout_corr/rollout_is_{stat}',
    '',
    'none',
    'Importance weights of trainer against sampler (algorithm.rollout_correction.rollout_is): mean, std, min, max, eff_sample_size and others.',
  ],
  [
    'rollout_corr/rollout_rs_{stat}',
    '',
    'none',
    'Statistics by which tokens are rejected (rollout_rs), and the share that is: masked_fraction, seq_masked_fraction.',
  ],
  [
    'rollout_corr/{stat}',
    '',
    'none',
    'How far the trainer is from the sampler: kl, k3_kl, training_ppl, rollout_ppl, log_ppl_diff, chi2_token and others.',
  ],
  [
    'reward_extra/overlong/mean',
    '',
    'down',
    'Share of responses with a penalty for their length (reward.overlong_buffer).',
  ],
  ['reward_extra/overlong_reward/mean', '', 'up', 'Mean of this penalty, 0 or less.'],
  ['reward_extra/score/mean', '', 'up', 'Mean score without this penalty.'],
  ['gdpo/{name}/{stat}', '', 'up', 'A score of algorithm.gdpo_reward_keys: mean, std (of the population), max, min.'],
  ['reward_extra/{name}/mean', '', 'none', 'Mean of a number that the scorer returns beside the score.'],
  ['actor/pg_loss', '', 'none', 'Policy loss.'],
  ['actor/kl_loss', '', 'down', 'Distance to the reference policy, as in the loss.'],
  [
    'actor/positive_nll_loss',
    'nats',
    'down',
    'Negative log-probability of a token in responses whose score is above 0.',
  ],
  ['actor/kl_coef', '', 'none', 'Its weight.'],
  ['actor/reward_kl_penalty', '', 'down', 'Mean KL from the reference policy; algorithm.use_kl_in_reward.'],
  ['actor/reward_kl_penalty_coeff', '', 'none', 'The weight of this penalty in the rewards of the batch.'],
  ['actor/entropy', 'nats', 'none', 'Entropy of the policy that sampled the responses, before the update.'],
  ['actor/entropy_loss', 'nats', 'none', 'Entropy in the loss; with actor.entropy_coeff or actor.calculate_entropy.'],
  ['actor/loss', '', 'none', 'The whole loss.'],
  ['actor/pg_clipfrac', '', 'none', 'Share of tokens that were clipped.'],
  ['actor/pg_clipfrac_lower', '', 'none', 'Share of tokens that the dual clip bounded.'],
  ['actor/own/{name}', '', 'none', 'A number that a loss of your own reports.'],
  ['actor/ppo_kl', '', 'none', 'Mean of old minus new log-prob.'],
  ['actor/log_ratio_mean', '', 'none', 'Mean over responses of new minus old log-prob; loss sppo.'],
  ['actor/preference_mean', '', 'none', 'Mean over responses of what this log-ratio is to become; loss sppo.'],
  [
    'actor/dpo_accuracy',
    '',
    'up',
    'Share of pairs whose better response the policy prefers more than the reference does; loss online_dpo.',
  ],
  ['actor/dpo_margin', '', 'up', 'Mean difference of the implicit rewards of the two responses; loss online_dpo.'],
  [
    'variance_proxy/{name}',
    '',
    'none',
    'How noisy the gradient is, by its norm and Σπ²: proxy1_signal_strength, proxy2_total_power, proxy3_pure_noise, expected_a_squared, expected_w; optimal token baselines.',
  ],
  ['actor/grad_norm', '', 'none', 'Norm of the gradient before clipping.'],
  [
    'actor/router_aux_loss',
    '',
    'down',
    'Auxiliary loss of a mixture of experts, without its weight: the experts of a token when all get equally many.',
  ],
  [
    'actor/expert_load_max',
    '',
    'down',
    'Largest number of tokens of an expert, as a multiple of the mean of its layer.',
  ],
  [
    'actor/expert_load_min',
    '',
    'up',
    'Smallest number of tokens of an expert, as a multiple of the mean of its layer.',
  ],
  ['actor/idle_experts', '', 'down', 'Share of the experts that got no token in an optimiser step.'],
  ['actor/lr', '', 'none', 'Learning rate of the last optimiser step.'],
  [
    'critic/score/{stat}',
    '',
    'up',
    'Scores of the responses, with the penalty of reward.overlong_buffer: mean, max, min, std (of the population).',
  ],
  ['critic/rewards/{stat}', '', 'up', 'Rewards: scores less the KL penalty (algorithm.use_kl_in_reward).'],
  ['actor/log_prob', '', 'none', 'Mean log-prob of the response tokens; loss flowrl.'],
  ['actor/old_log_prob', '', 'none', 'The same before the update.'],
  ['actor/ref_log_prob', '', 'none', 'The same under the reference policy.'],
  ['actor/log_reward', '', 'none', 'Mean reward of a token, the advantage; loss flowrl.'],
  ['actor/ref_kl', '', 'none', 'Mean of reference minus new log-prob; loss flowrl.'],
  ['actor/log_z', '', 'none', 'Mean estimate of a prompt’s log partition function; loss flowrl.'],
  ['actor/importance_weight', '', 'none', 'Mean weight of a response, at most 10; loss flowrl.'],
  ['actor/final_loss', '', 'down', 'The loss flowrl: squared residual of the trajectory balance.'],
  ['log_z/loss', '', 'down', 'The same as a function of log Z, while its model is trained.'],
  ['log_z/grad_norm', '', 'none', 'Gradient norm of the model of log Z before clipping.'],
  ['log_z/lr', '', 'none', 'Its learning rate in the last optimiser step.'],
  ['reward_model/dpo_loss', '', 'down', 'Loss of the implicit reward model (adv_estimator prime).'],
  ['reward_model/dpo_acc', '', 'up', 'Share of pairs of responses to a prompt that it orders as their accuracies do.'],
  [
    'reward_model/dpo_acc_abs',
    '',
    'up',
    'Share of responses whose log-ratio to the reference has the sign of a right or a wrong one.',
  ],
  ['reward_model/reward', '', 'none', 'Mean over responses of the sum of its rewards.'],
  ['reward_model/raw_reward', '', 'none', 'Mean over responses of its log-ratio to the reference.'],
  ['reward_model/grad_norm', '', 'none', 'Norm of its gradient before clipping.'],
  ['reward_model/lr', '', 'none', 'Its learning rate in the last optimiser step.'],
  [
    'spo/p_hats',
    '',
    'up',
    'Mean of the success rates that the prompts of the batch had before it, the baselines of their responses; estimator spo.',
  ],
  ['spo/adv_before_norm', '', 'none', 'Mean of score minus this rate.'],
  ['spo/alpha', '', 'none', 'Mean count of successes behind these rates.'],
  ['spo/beta', '', 'none', 'Mean count of failures behind them.'],
  ['spo/Neff', '', 'none', 'Mean of both counts together.'],
  [
    'spo/D',
    '',
    'none',
    'Mean distance by which the policy has moved on the last responses to these prompts; algorithm.spo.rho.type kl.',
  ],
  ['spo/rho', '', 'none', 'Mean factor with which the past of these prompts counts, before it is clipped.'],
  ['spo/rho_clipped', '', 'none', 'The same after it is clipped; algorithm.spo.rho.type kl.'],
  ['spo/first_sampled_ratio', '', 'none', 'Share of the prompts of the batch that were never sampled before.'],
  [
    'spo/cur_sampled_number/{stat}',
    '',
    'none',
    'How often these prompts were sampled, with this batch: mean, min, max.',
  ],
  ['distillation/loss', '', 'down', 'Loss of the teacher’s log-probs, as in the whole loss before its weight.'],
  [
    'distillation/abs_loss',
    '',
    'down',
    'Mean distance of a token from the teacher, in absolute value, before it is clamped.',
  ],
  ['distillation/loss_min', '', 'none', 'Smallest loss of a token, before it is clamped.'],
  ['distillation/loss_max', '', 'down', 'Largest loss of a token, before it is clamped.'],
  ['distillation/pg_clipfrac', '', 'none', 'Share of tokens that were clipped; use_policy_gradient.'],
  ['distillation/pg_clipfrac_lower', '', 'none', 'Share of tokens that the dual clip bounded; use_policy_gradient.'],
  ['distillation/ppo_kl', '', 'none', 'Mean of old minus new log-prob; use_policy_gradient.'],
  [
    'distillation/student_mass',
    '',
    'up',
    'Mean probability that the policy gives the teacher’s top-k tokens together.',
  ],
  ['distillation/student_mass_{stat}', '', 'none', 'The same at single positions: min, max.'],
  ['distillation/teacher_mass', '', 'none', 'Mean probability that the teacher gives its top-k tokens together.'],
  ['distillation/teacher_mass_{stat}', '', 'none', 'The same at single positions: min, max.'],
  ['critic/advantages/{stat}', '', 'none', 'Advantages over response tokens.'],
  ['critic/returns/{stat}', '', 'none', 'Returns over response tokens.'],
  ['critic/values/{stat}', '', 'none', 'Values of the critic over response tokens.'],
  [
    'critic/vf_explained_var',
    '',
    'up',
    'Share of the variance of the returns that the values explain; 1 is perfect, 0 no better than the mean.',
  ],
  ['critic/vf_loss', '', 'down', 'Loss of the value model (critic.enable).'],
  ['critic/vf_clipfrac', '', 'none', 'Share of tokens whose value loss was clipped.'],
  ['critic/vpred_mean', '', 'none', 'Mean value that the value model predicts while it is trained.'],
  ['critic/grad_norm', '', 'none', 'Gradient norm of the value model before clipping.'],
  ['critic/lr', '', 'none', 'Learning rate of the value model in the last optimiser step.'],
  ['response_length/clip_ratio', '', 'down', 'Share of responses that reached data.max_response_length.'],
  ['response_length/{stat}', 'tokens', 'none', 'Length of responses: mean, max, min.'],
  [
    'response_length_non_aborted/clip_ratio',
    '',
    'down',
    'Share of the responses that are not empty that reached data.max_response_length.',
  ],
  [
    'response_length_non_aborted/{stat}',
    'tokens',
    'none',
    'Length of the responses that are not empty: mean, max, min.',
  ],
  ['response/aborted_ratio', '', 'down', 'Share of empty responses.'],
  ['prompt_length/clip_ratio', '', 'down', 'Share of prompts that reached data.max_prompt_length.'],
  ['prompt_length/{stat}', 'tokens', 'none', 'Length of prompts: mean, max, min.'],
  [
    'val-core/{source}/acc/mean@{n}',
    '',
    'up',
    'Accuracy of the validation on a data source, with n responses to a prompt. Needs a scorer that returns acc.',
  ],
  [
    'val-core/{source}/reward/mean@{n}',
    '',
    'up',
    'Mean score of the validation on a data source whose scorer returns no acc.',
  ],
  [
    'val-core/{source}/{name}/best@{n}/{stat}',
    '',
    'up',
    'The best of n responses drawn with replacement from the n: mean, std.',
  ],
  [
    'val-core/{source}/{name}/maj@{n}/{stat}',
    '',
    'up',
    'The majority answer of n responses drawn with replacement from the n: mean, std. Needs a scorer that returns pred.',
  ],
  [
    'val-aux/{source}/{name}/mean@{n}',
    '',
    'none',
    'Validation mean of the score (reward) beside acc, or of another number that the scorer returns.',
  ],
  [
    'val-aux/{source}/{name}/std@{n}',
    '',
    'none',
    'Standard deviation over the n responses to a prompt, averaged over prompts.',
  ],
  [
    'val-aux/{source}/{name}/best@{k}/{stat}',
    '',
    'none',
    'The best of k responses drawn with replacement, for k = 2, 4, … up to n.',
  ],
  ['val-aux/{source}/{name}/worst@{k}/{stat}', '', 'none', 'The worst of them.'],
  ['val-aux/{source}/{name}/maj@{k}/{stat}', '', 'none', 'The majority answer of them.'],
  ['val/response_tokens', 'tokens', 'none', 'Response tokens of the validation.'],
  ['train/loss', '', 'down', 'The loss where responses are given: per response token (sft), per pair (dpo, rm).'],
  [
    'rewards/chosen',
    '',
    'up',
    'Mean reward of chosen responses: beta times the log-ratio to the reference (dpo), the score (rm).',
  ],
  ['rewards/rejected', '', 'none', 'The same of rejected responses.'],
  [
    'rewards/accuracies',
    '',
    'up',
    'Share of pairs whose chosen response has the higher reward, before the step; a tie is wrong.',
  ],
  ['rewards/margins', '', 'up', 'Mean of the reward of the chosen less that of the rejected response.'],
  ['logps/chosen', 'nats', 'none', 'Mean log-prob of chosen responses (dpo).'],
  ['logps/rejected', 'nats', 'none', 'Mean log-prob of rejected responses (dpo).'],
  ['reward_model/loss', '', 'down', 'Loss of a reward model in training: the mean over pairs.'],
];

const OPERATIONAL: readonly Row[] = [
  [
    'timing_s/step',
    's',
    'down',
    'Wall time of the iteration: from its first rollout job to its commit, interruptions included.',
  ],
  ['timing_s/batch', 's', 'down', 'The part of timing_s/step before the batch is committed; the update follows.'],
  ['timing_s/gen', 's', 'down', 'Wall time of the rollout jobs, from the first start to the last end.'],
  ['timing_s/reward', 's', 'down', 'Wall time of the scoring jobs, which run beside the rollouts.'],
  [
    'timing_s/old_log_prob',
    's',
    'down',
    'Log-probs of the policy before the update; only when the update has several steps, or rewards or advantages read them.',
  ],
  ['timing_s/ref', 's', 'down', 'Log-probs of the reference policy.'],
  ['timing_s/log_z', 's', 'down', 'Log Z of the prompts; loss flowrl.'],
  [
    'timing_s/reward_model',
    's',
    'down',
    'Scores of the reward model, or log-probs of an implicit one for a batch that is made with them.',
  ],
  ['timing_s/spo', 's', 'down', 'Log-probs of the last responses to the prompts of the batch; estimator spo.'],
  ['timing_s/teacher', 's', 'down', 'Log-probs of the teacher (distillation.enabled).'],
  ['timing_s/values', 's', 'down', 'Values of the critic.'],
  ['timing_s/adv', 's', 'down', 'Advantages and packing: the advantage job without its log-probs.'],
  ['timing_s/update_actor', 's', 'down', 'Forward, backward and optimiser steps.'],
  ['timing_s/update_critic', 's', 'down', 'As update_actor, where the critic has a trainer of its own.'],
  [
    'timing_s/save_checkpoint',
    's',
    'down',
    'Time that training waits for a checkpoint: the copy of the state. It is written beside the next iteration.',
  ],
  ['timing_s/load_weights', 's', 'down', 'Time that rollout jobs waited for new weights, summed over the jobs.'],
  [
    'perf/weights_from_workers_gb',
    'GB',
    'none',
    'Weights that rollout workers got from the memory of the trainer or of each other.',
  ],
  ['perf/weights_from_store_gb', 'GB', 'none', 'Weights that rollout workers read from the store.'],
  ['timing_s/testing', 's', 'down', 'Wall time of the validation.'],
  [
    'timing_per_token_ms/{stage}',
    'ms',
    'down',
    'Time of a stage per token: gen per response token; adv, ref and update_actor per prompt and response token.',
  ],
  [
    'perf/state_loads',
    '',
    'down',
    'How often the trainer loaded the state for this iteration: after a loss, or for a turn (trainer.share).',
  ],
  [
    'perf/replayed_iterations',
    'iterations',
    'down',
    'Earlier iterations that the trainer computed again for this one.',
  ],
  ['perf/total_num_tokens', 'tokens', 'none', 'Prompt and response tokens of the iteration.'],
  ['perf/time_per_step', 's', 'down', 'The same as timing_s/step.'],
  ['perf/throughput', 'tokens/s', 'up', 'Value of perf/total_num_tokens divided by timing_s/step.'],
  [
    'perf/response_throughput',
    'tokens/s',
    'up',
    'Response tokens (training/response_tokens) divided by timing_s/step: the tokens/s on the screen.',
  ],
  ['actor/perf/cpu_memory_used_gb', 'GiB', 'down', 'Resident memory of the trainer process after the update.'],
  ['rollout/decoded_tokens', 'tokens', 'none', 'Response tokens decoded by the workers that finished the rollouts.'],
  ['rollout/resumed_tokens', 'tokens', 'none', 'Response tokens taken from the journal of a worker that went away.'],
  ['rollout/resumed_samples', 'samples', 'none', 'Samples that were continued from such tokens.'],
  [
    'reward/samples_scored_ahead',
    'samples',
    'none',
    'Samples whose score was there, or under way, when their reward job began.',
  ],
  ['fleet/workers', 'workers', 'none', 'Workers of the stack, of all machines, when the iteration is committed.'],
  [
    'fleet/joined',
    'workers',
    'none',
    'Workers that have joined since the iteration before: processes that announced themselves.',
  ],
  [
    'fleet/notices',
    'workers',
    'none',
    'Workers that were told to leave, or whose cloud expects to take the machine back; not those that the fleet gives back.',
  ],
  ['fleet/lost', 'workers', 'none', 'Workers that were gone without having been told to leave.'],
  ['fleet/replaced', 'workers', 'none', 'Workers, lost or told to leave, whose successor has joined.'],
];

/**
 * Names that stand in records, and what shows the same under verl's name. They are read, and not listed beside it;
 * without `now` they are listed.
 */
const FORMER: readonly { readonly name: string; readonly now?: string; readonly info: MetricInfo }[] = [
  formerly('timing_s/rollout', 'timing_s/gen', 's', 'Seconds of the rollout jobs, added up.'),
  formerly('timing_s/advantage', 'timing_s/adv', 's', 'Seconds of the advantage job.'),
  formerly('timing_s/update', 'timing_s/update_actor', 's', 'Seconds of the update job.'),
  formerly(
    'val/accuracy',
    'val-core/{source}/mean@{n}',
    '',
    'Mean over the validation questions of acc, or of the score.',
    'reproducible',
  ),
  ...['val-core/acc/{stat}', 'val-core/score/{stat}', 'val-aux/{name}/{stat}'].map((name) => {
    const doc = 'What a validation of an older petrel reported of all data sources together.';
    return { name, info: { name, unit: '', direction: 'none' as const, kind: 'reproducible' as const, doc } };
  }),
];

/** The whole table. */
export const METRICS: readonly MetricInfo[] = [
  ...REPRODUCIBLE.map((row) => toInfo(row, 'reproducible')),
  ...OPERATIONAL.map((row) => toInfo(row, 'operational')),
];

const EXACT = new Map(METRICS.filter(({ name }) => !name.includes('{')).map((info) => [info.name, info]));

const PATTERNS = METRICS.filter(({ name }) => name.includes('{')).map((info) => ({
  info,
  pattern: toPattern(info.name),
}));

/** What is known of a metric; exact names before patterns, undefined when the table does not have it. */
export function metricInfo(name: string): MetricInfo | undefined {
  return (
    EXACT.get(name) ??
    PATTERNS.find(({ pattern }) => pattern.test(name))?.info ??
    FORMER.find((former) => toPattern(former.name).test(name))?.info
  );
}

/** The names that show what a former name showed; none for a name that is no former one. */
export function presentNames(name: string, names: readonly string[]): string[] {
  const now = FORMER.find((former) => former.name === name)?.now;
  return now === undefined ? [] : names.filter((other) => toPattern(now).test(other));
}

/** Metrics that two equal runs agree on, to the bit. */
export function reproducibleMetrics(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => metricInfo(name)?.kind === 'reproducible'));
}

function formerly(
  name: string,
  now: string,
  unit: string,
  doc: string,
  kind: MetricInfo['kind'] = 'operational',
): (typeof FORMER)[number] {
  return { name, now, info: { name, unit, direction: 'none', kind, doc } };
}

function toInfo([name, unit, direction, doc]: Row, kind: MetricInfo['kind']): MetricInfo {
  return { name, unit, direction, kind, doc };
}

function toPattern(name: string): RegExp {
  const source = name
    .split(/(\{[a-z]+\})/)
    .map((part) =>
      part === '{source}' ? '.+' : part.startsWith('{') ? '[^/]+' : part.replace(/[.*+?^$()|[\]\\]/g, '\\$&'),
    );
  return new RegExp(`^${source.join('')}$`);
}
