/**
 * Every metric that a run reports, and no other, in one closed table: unit, which way is better, and whether two runs that
 * should be equal must agree on it. verl's names where verl has the metric. tests/integration/metrics.test.ts compares the
 * table with what real runs report, both ways.
 *
 * `{…}` in a name stands for one or more characters without a slash: `critic/score/{stat}`.
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
  ['actor/pg_loss', '', 'none', 'Policy loss.'],
  ['actor/kl_loss', '', 'down', 'Distance to the reference policy, as in the loss.'],
  ['actor/kl_coef', '', 'none', 'Its weight.'],
  ['actor/entropy_loss', 'nats', 'none', 'Entropy as aggregated for the loss.'],
  ['actor/loss', '', 'none', 'The whole loss.'],
  ['actor/pg_clipfrac', '', 'none', 'Share of tokens that were clipped.'],
  ['actor/pg_clipfrac_lower', '', 'none', 'Share of tokens that the dual clip bounded.'],
  ['actor/ppo_kl', '', 'none', 'Mean of old minus new log-prob.'],
  ['actor/grad_norm', '', 'none', 'Norm of the gradient before clipping.'],
  ['actor/lr', '', 'none', 'Learning rate of the last optimiser step.'],
  ['critic/score/{stat}', '', 'up', 'Scores of the responses: mean, max, min.'],
  ['critic/rewards/{stat}', '', 'up', 'Rewards: scores less penalties.'],
  ['critic/advantages/{stat}', '', 'none', 'Advantages over response tokens.'],
  ['critic/returns/{stat}', '', 'none', 'Returns over response tokens.'],
  ['response_length/clip_ratio', '', 'down', 'Share of responses that reached data.max_response_length.'],
  ['response_length/{stat}', 'tokens', 'none', 'Length of responses: mean, max, min.'],
  ['response_length_non_aborted/clip_ratio', '', 'down', 'The same share, of the responses that are not empty.'],
  [
    'response_length_non_aborted/{stat}',
    'tokens',
    'none',
    'Length of the responses that are not empty: mean, max, min.',
  ],
  ['response/aborted_ratio', '', 'down', 'Share of empty responses.'],
  ['prompt_length/clip_ratio', '', 'down', 'Share of prompts that reached data.max_prompt_length.'],
  ['prompt_length/{stat}', 'tokens', 'none', 'Length of prompts: mean, max, min.'],
  ['val/accuracy', '', 'up', 'Mean over the validation questions of acc, or of the score.'],
  ['val/response_tokens', 'tokens', 'none', 'Response tokens of the validation.'],
  ['train/loss', '', 'down', 'SFT: mean loss per response token.'],
];

const OPERATIONAL: readonly Row[] = [
  ['timing_s/{stage}', 's', 'down', 'Wall time of the jobs of a stage: rollout, reward, advantage, update.'],
  ['rollout/decoded_tokens', 'tokens', 'none', 'Response tokens decoded by the workers that finished the rollouts.'],
  ['rollout/resumed_tokens', 'tokens', 'none', 'Response tokens taken from the journal of a worker that went away.'],
  ['rollout/resumed_samples', 'samples', 'none', 'Samples that went on from such tokens.'],
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

function toPattern(name: string): RegExp {
  const source = name
    .split(/(\{[a-z]+\})/)
    .map((part) => (part.startsWith('{') ? '[^/]+' : part.replace(/[.*+?^$()|[\]\\]/g, '\\$&')));
  return new RegExp(`^${source.join('')}$`);
}
