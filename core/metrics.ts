/**
 * Every metric petrel reports, in one closed table: unit, which way is better, and whether two runs that should be equal
 * must agree on it. verl's names where verl has the metric.
 *
 * `{…}` in a name stands for one or more characters: `val-core/{source}/acc/mean@{n}`.
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

type Row = readonly [name: string, unit: string, direction: MetricInfo['direction'], doc: string];

const REPRODUCIBLE: readonly Row[] = [
  ['training/global_step', 'iterations', 'none', 'The iteration.'],
  ['training/epoch', 'epochs', 'none', 'Passes over the training rows so far, with a fraction.'],
  ['training/policy_version', 'versions', 'none', 'Version of the policy that the iteration made.'],
  ['training/optimizer_steps', 'steps', 'none', 'Optimiser steps taken in the iteration.'],
  ['training/skipped_steps', 'steps', 'down', 'Optimiser steps skipped for a non-finite loss or gradient.'],
  ['training/bad_steps', 'iterations', 'down', 'Skipped updates in a row.'],
  ['training/rollout_probs_diff_valid', '', 'none', '1 when rollout and training log-probs could be compared.'],
  [
    'training/rollout_probs_diff_{stat}',
    '',
    'down',
    'Difference of rollout and training probabilities: max, mean, std.',
  ],
  ['training/rollout_actor_probs_pearson_corr', '', 'up', 'Correlation of rollout and training probabilities.'],
  ['training/filter_groups/{fate}', 'samples', 'none', 'Samples left out by the group filter.'],
  ['training/rollout_failure/evicted_samples', 'samples', 'down', 'Failed samples, left out of statistics and loss.'],
  ['training/samples', 'samples', 'none', 'Samples that the batch trains on.'],
  ['training/failed_samples', 'samples', 'down', 'Samples that could not be scored.'],
  ['training/tokens', 'tokens', 'none', 'Prompt and response tokens of the batch.'],
  ['training/failed_fraction', '', 'down', 'Failed samples over all samples of the iteration.'],
  ['training/filtered_groups', 'groups', 'down', 'Groups with fewer than two valid samples, left out of the batch.'],
  ['training/off_policy/{what}/{stat}', 'versions', 'down', 'Spans and staleness of trajectories.'],
  ['actor/pg_loss', '', 'none', 'Policy loss.'],
  ['actor/kl_loss', '', 'down', 'Distance to the reference policy, as in the loss.'],
  ['actor/kl_coef', '', 'none', 'Its weight.'],
  ['actor/entropy', 'nats', 'none', 'Mean entropy of the next-token distributions before the update.'],
  ['actor/entropy_loss', 'nats', 'none', 'Entropy as aggregated for the loss.'],
  ['actor/loss', '', 'none', 'The whole loss.'],
  ['actor/pg_clipfrac', '', 'none', 'Share of tokens that were clipped.'],
  ['actor/pg_clipfrac_lower', '', 'none', 'Share of tokens that the dual clip bounded.'],
  ['actor/ppo_kl', '', 'none', 'Mean of old minus new log-prob.'],
  ['actor/grad_norm', '', 'none', 'Norm of the gradient before clipping.'],
  ['actor/lr', '', 'none', 'Learning rate of the last optimiser step.'],
  ['actor/reward_kl_penalty', '', 'none', 'KL subtracted from the reward.'],
  ['actor/reward_kl_penalty_coeff', '', 'none', 'Its coefficient.'],
  ['critic/score/{stat}', '', 'up', 'Scores of the responses: mean, max, min.'],
  ['critic/rewards/{stat}', '', 'up', 'Rewards: scores less penalties.'],
  ['critic/advantages/{stat}', '', 'none', 'Advantages over response tokens.'],
  ['critic/returns/{stat}', '', 'none', 'Returns over response tokens.'],
  ['critic/values/{stat}', '', 'none', 'Values over response tokens.'],
  ['critic/acc/{stat}', '', 'up', 'Correct responses, where the scorer says which are.'],
  ['critic/vf_{what}', '', 'none', 'The value loss and what it explains.'],
  ['response_length/clip_ratio', '', 'down', 'Share of responses that reached data.max_response_length.'],
  ['response_length/{stat}', 'tokens', 'none', 'Length of responses: mean, max, min.'],
  ['response_length_non_aborted/clip_ratio', '', 'down', 'The same without empty responses.'],
  ['response_length_non_aborted/{stat}', 'tokens', 'none', 'The same without empty responses.'],
  ['response/aborted_ratio', '', 'down', 'Share of empty responses.'],
  ['prompt_length/clip_ratio', '', 'down', 'Share of prompts that reached data.max_prompt_length.'],
  ['prompt_length/{stat}', 'tokens', 'none', 'Length of prompts: mean, max, min.'],
  ['num_turns/{stat}', 'turns', 'none', 'Turns per sample.'],
  ['tool_call_counts/{stat}', 'calls', 'none', 'Tool calls per sample.'],
  ['global_seqlen/{stat}', 'tokens', 'none', 'Tokens per shard of the batch.'],
  ['rollout_corr/{what}', '', 'none', 'Correction of the difference between sampling and training policy.'],
  ['perf/total_num_tokens', 'tokens', 'none', 'Prompt and response tokens of the iteration.'],
  ['val/accuracy', '', 'up', 'Mean over the validation questions of acc, or of the score.'],
  ['val/response_tokens', 'tokens', 'none', 'Response tokens of the validation.'],
  ['val-core/{source}/{variable}/{statistic}', '', 'up', 'Validation: the main figures, such as acc/mean@1.'],
  ['val-aux/{source}/{variable}/{statistic}', '', 'up', 'Validation: the other figures.'],
  ['val-aux/num_turns/{stat}', 'turns', 'none', 'Turns per validation sample.'],
  ['train/loss', '', 'down', 'SFT: mean loss per response token.'],
  ['train/grad_norm', '', 'none', 'SFT: norm of the gradient before clipping.'],
  ['train/lr', '', 'none', 'SFT: learning rate.'],
  ['train/global_tokens', 'tokens', 'none', 'SFT: tokens of the iteration.'],
  ['val/loss', '', 'down', 'SFT: validation loss per response token.'],
];

const OPERATIONAL: readonly Row[] = [
  [
    'timing_s/{stage}',
    's',
    'down',
    'Wall time of a stage: gen, reward, old_log_prob, ref, adv, update_actor, save_checkpoint, testing, step.',
  ],
  ['timing_per_token_ms/{stage}', 'ms', 'down', 'Wall time per token (gen: per response token).'],
  ['perf/time_per_step', 's', 'down', 'Wall time of the iteration.'],
  ['perf/throughput', 'tokens/s', 'up', 'Prompt and response tokens per second of the iteration.'],
  ['perf/decode_throughput', 'tokens/s', 'up', 'Response tokens per second while generating.'],
  ['perf/update_throughput', 'tokens/s', 'up', 'Tokens per second in the update.'],
  ['perf/mfu/{part}', '', 'up', 'Share of the peak arithmetic that was used.'],
  ['perf/cpu_memory_used_gb', 'GiB', 'down', 'Memory of the worker processes.'],
  ['perf/max_memory_allocated_gb', 'GiB', 'down', 'Most memory the engine held.'],
  ['orchestration/overhead_s', 's', 'down', 'Iteration wall time less engine and scorer time.'],
  ['orchestration/event_loop_delay_p999_ms', 'ms', 'down', 'Delay of the event loop, 99.9th percentile.'],
  ['dispatch/wait_s/{job}', 's', 'down', 'From publishing a job to its first progress.'],
  ['dispatch/jobs/{job}', 'jobs', 'none', 'Jobs of a class that the iteration ran.'],
  ['dispatch/redelivered/{job}', 'jobs', 'down', 'Jobs delivered more than once.'],
  ['dispatch/workers/{role}', 'workers', 'none', 'Workers that held the role.'],
  ['rollout/decoded_tokens', 'tokens', 'none', 'Response tokens decoded by the workers that finished the rollouts.'],
  ['rollout/resumed_tokens', 'tokens', 'none', 'Response tokens taken from the journal of a worker that went away.'],
  ['rollout/resumed_samples', 'samples', 'none', 'Samples that went on from such tokens.'],
  ['store/create_ms', 'ms', 'down', 'Median time of a conditional create.'],
  ['store/written_bytes', 'bytes', 'down', 'Bytes written in the iteration.'],
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
  return EXACT.get(name) ?? PATTERNS.find(({ pattern }) => pattern.test(name))?.info;
}

/** Metrics that two equal runs agree on, to the bit. */
export function reproducibleMetrics(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => metricInfo(name)?.kind === 'reproducible'));
}

function toInfo([name, unit, direction, doc]: Row, kind: MetricInfo['kind']): MetricInfo {
  return { name, unit, direction, kind, doc };
}

/** A data source may have slashes in it (`openai/gsm8k`), a variable may not. */
function toPattern(name: string): RegExp {
  const source = name
    .split(/(\{[a-z]+\})/)
    .map((part) =>
      part === '{source}' ? '.+' : part.startsWith('{') ? '[^/]+' : part.replace(/[.*+?^$()|[\]\\]/g, '\\$&'),
    );
  return new RegExp(`^${source.join('')}$`);
}
