/**
 * The settings of the rollout correction, parsed once when a recipe is read (verl: `algorithm.rollout_correction`; Yao
 * et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training"; IcePop: Ling team 2025, arXiv
 * 2510.18855).
 */
import { InvalidInputError } from '../../errors.ts';
import { log } from '../../math/log.ts';
import { parseBounds, thresholdList, type Bounds } from './threshold.ts';

export type CorrectionLevel = 'token' | 'sequence';

/** How importance weights are formed. */
export interface WeightOptions {
  /** `token`: a weight per token. `sequence`: the product over the row, on all its tokens. */
  readonly level: CorrectionLevel;
  /** Larger weights are truncated to it; with a lower bound, weights outside both become 0 (IcePop). */
  readonly bounds: Bounds;
  /** Divide by the mean weight. */
  readonly batchNormalize: boolean;
}

export const REJECTION_STATISTICS = [
  'token_k1',
  'token_k2',
  'token_k3',
  'seq_sum_k1',
  'seq_sum_k2',
  'seq_sum_k3',
  'seq_mean_k1',
  'seq_mean_k2',
  'seq_mean_k3',
  'seq_max_k2',
  'seq_max_k3',
] as const;
export type RejectionStatistic = (typeof REJECTION_STATISTICS)[number];

/** Tokens, or whole rows, are kept while the statistic is within [lowest, highest]. */
export interface RejectionRule {
  readonly statistic: RejectionStatistic;
  readonly estimator: 'k1' | 'k2' | 'k3';
  /** How the tokens' values become that of a row; `none`: each token is judged by itself. */
  readonly over: 'none' | 'sum' | 'mean' | 'max';
  /** Lower bound of k1, a logarithm of the bound; k2 and k3 have no lower bound. */
  readonly lowest?: number;
  readonly highest: number;
}

export const BYPASS_LOSS_TYPES = ['ppo_clip', 'reinforce'] as const;
export type BypassLossType = (typeof BYPASS_LOSS_TYPES)[number];

export interface RolloutCorrection {
  /** Absent: no importance weights. */
  readonly weights?: WeightOptions;
  /** All must accept a token. */
  readonly rejection: readonly RejectionRule[];
  /** `ppo_clip`; only the policy loss `bypass_mode` reads it. */
  readonly lossType: BypassLossType;
}

/** The section of a recipe; absent keys have verl's defaults. */
export interface RolloutCorrectionSection {
  /** null. */
  readonly rollout_is?: unknown;
  /** 2; null turns importance weights off. */
  readonly rollout_is_threshold?: unknown;
  /** false. */
  readonly rollout_is_batch_normalize?: boolean | undefined;
  /** null. */
  readonly rollout_rs?: unknown;
  /** No default: needed with rollout_rs. */
  readonly rollout_rs_threshold?: unknown;
  /** ppo_clip. */
  readonly loss_type?: unknown;
}

/** @throws InvalidInputError that names the key, what was expected and what came */
export function parseRolloutCorrection(section: RolloutCorrectionSection): RolloutCorrection {
  const { rollout_is: level = null, rollout_is_threshold: threshold = 2, rollout_rs: statistics = null } = section;
  const weights =
    level === null || threshold === null
      ? undefined
      : parseWeights(level, threshold, section.rollout_is_batch_normalize ?? false);
  return {
    ...(weights === undefined ? {} : { weights }),
    rejection: statistics === null ? [] : parseRejection(statistics, section.rollout_rs_threshold),
    lossType: parseLossType(section.loss_type ?? 'ppo_clip'),
  };
}

/** @throws InvalidInputError */
export function parseWeights(level: unknown, threshold: unknown, batchNormalize: boolean): WeightOptions {
  if (level !== 'token' && level !== 'sequence') {
    throw new InvalidInputError(`rollout_is: expected token or sequence, got ${JSON.stringify(level)}`);
  }
  return { level, bounds: parseBounds('rollout_is_threshold', threshold), batchNormalize };
}

/**
 * One rule for each different statistic of a comma-separated list; a repeated statistic counts once.
 * @throws InvalidInputError
 */
export function parseRejection(statistics: unknown, threshold: unknown): readonly RejectionRule[] {
  const names = typeof statistics === 'string' ? statistics.split(',').map((name) => name.trim()) : [];
  const wanted = [...new Set(names.filter((name) => name !== ''))];
  if (wanted.length === 0) {
    throw new InvalidInputError(`rollout_rs: expected a list such as "token_k1,seq_mean_k3"`, {
      hint: `of ${REJECTION_STATISTICS.join(', ')}`,
    });
  }
  if (threshold === null || threshold === undefined) {
    throw new InvalidInputError('rollout_rs needs rollout_rs_threshold', {
      hint: 'for example "0.5_2" for k1, 0.1 for k2 and k3',
    });
  }
  const thresholds = thresholdList('rollout_rs_threshold', threshold, wanted.length);
  return wanted.map((name, i) => rule(name, thresholds[i]));
}

function rule(name: string, threshold: unknown): RejectionRule {
  const statistic = REJECTION_STATISTICS.find((known) => known === name);
  if (statistic === undefined) {
    throw new InvalidInputError(`rollout_rs: unknown statistic "${name}"`, {
      hint: `one of ${REJECTION_STATISTICS.join(', ')}`,
    });
  }
  const bounds = parseBounds('rollout_rs_threshold', threshold);
  const estimator = statistic.endsWith('k1') ? 'k1' : statistic.endsWith('k2') ? 'k2' : 'k3';
  const over = statistic.startsWith('token') ? 'none' : overOf(statistic);
  if (estimator === 'k1') return { statistic, estimator, over, ...logBounds(bounds) };
  if (bounds.lower !== undefined) {
    throw new InvalidInputError(
      `rollout_rs_threshold: ${statistic} has only an upper bound, got ${JSON.stringify(threshold)}`,
      { hint: `give the upper one alone: ${bounds.upper}` },
    );
  }
  return { statistic, estimator, over, highest: bounds.upper };
}

function overOf(statistic: RejectionStatistic): 'sum' | 'mean' | 'max' {
  return statistic.startsWith('seq_sum') ? 'sum' : statistic.startsWith('seq_mean') ? 'mean' : 'max';
}

/** Bounds of a ratio as bounds of its logarithm. A single bound u means [1/u, u]. */
function logBounds({ lower, upper }: Bounds): { readonly lowest: number; readonly highest: number } {
  if (lower === undefined && upper < 1) {
    throw new InvalidInputError(
      `rollout_rs_threshold: one bound u of k1 means [1/u, u], so it must be at least 1, got ${upper}`,
      { hint: `for the same bounds write ${1 / upper}, or give both: "${upper}_${1 / upper}"` },
    );
  }
  return { lowest: log(lower ?? 1 / upper), highest: log(upper) };
}

function parseLossType(lossType: unknown): BypassLossType {
  if (lossType === 'ppo_clip' || lossType === 'reinforce') return lossType;
  throw new InvalidInputError(
    `rollout_correction.loss_type: expected ppo_clip or reinforce, got ${JSON.stringify(lossType)}`,
  );
}
