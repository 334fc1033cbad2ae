/**
 * How noisy the policy gradient of a batch is, without a gradient per sample (verl: `compute_variance_proxy_metrics`).
 * The squared norm of a sample's gradient is replaced by its score norm, as for the optimal token baseline:
 *
 *   W_s      = Σ_t w_t,  w_t = 1 − 2·π(y_t) + Σ_v π(v)²          π(y_t) = exp(old log-prob)
 *   signal   = ‖g‖²                                              the norm of the batch's gradient
 *   power    = mean over samples of A_s² · max(W_s, 0)           A_s: mean advantage of the sample's tokens
 *   noise    = max(0, (power − signal) / (S − 1))                0 for one sample, and without a gradient norm
 *
 * With importance weights ρ of a rollout correction: power = mean of ρ_s² · A_s² · max(W_s, 0), with ρ_s the mean
 * weight of the sample, and `expected_w` is the mean of Σ_t w_t·ρ_t². verl divides ρ² out again with a divisor of at
 * least 1e-10, so a token of weight 0 is missing from W_s.
 *
 * Means over a sample's tokens have 1e-8 in the denominator, and a fully masked sample counts with A_s = 0. A negative
 * W_s is not raised to 0 in `expected_w`. NaN for a batch without samples.
 */
import { at } from '../at.ts';
import { exp } from '../math/exp.ts';
import { square } from '../math/square.ts';
import { maskCounts, requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

export interface VarianceProxyInput {
  readonly rows: RaggedRows;
  /** Log-probs of the policy that the gradient belongs to. */
  readonly oldLogProb_T: Numbers;
  /** Σ_v π(v)² at every token (verl: `sum_pi_squared`). */
  readonly sumPiSquared_T: Numbers;
  readonly advantages_T: Numbers;
  /** Importance weights of a rollout correction, if it has any. */
  readonly rolloutIsWeights_T?: Numbers | undefined;
}

/** What can be said before the gradient is known. */
export interface GradientPower {
  readonly 'variance_proxy/proxy2_total_power': number;
  readonly 'variance_proxy/expected_a_squared': number;
  readonly 'variance_proxy/expected_w': number;
}

const EPSILON = 1e-8;
/** Smallest squared weight by which verl divides. */
const SMALLEST_SQUARE = 1e-10;

/** @throws InvalidInputError when an array has another length than the rows have tokens. */
export function gradientPower(input: VarianceProxyInput): GradientPower {
  requireArrays(input);
  const samples = rowCount(input.rows);
  const { advantage_S, weight_S, scoreNorm_S, weightedNorm_S } = perSample(input);
  let [power, squares, norms] = [0, 0, 0];
  for (let s = 0; s < samples; s++) {
    const squared = square(at(advantage_S, s));
    power += square(at(weight_S, s)) * squared * Math.max(at(scoreNorm_S, s), 0);
    squares += squared;
    norms += at(weightedNorm_S, s);
  }
  return {
    'variance_proxy/proxy2_total_power': power / samples,
    'variance_proxy/expected_a_squared': squares / samples,
    'variance_proxy/expected_w': norms / samples,
  };
}

/** `gradNorm`: norm of the gradient before clipping. Without it signal and noise are 0. */
export function signalAndNoise(power: number, samples: number, gradNorm: number | undefined): Record<string, number> {
  const signal = square(gradNorm ?? 0);
  const hasNoise = gradNorm !== undefined && samples > 1;
  return {
    'variance_proxy/proxy1_signal_strength': signal,
    'variance_proxy/proxy3_pure_noise': hasNoise ? Math.max(0, (power - signal) / (samples - 1)) : 0,
  };
}

/** Mean advantage, mean weight, W_s, and Σ_t w_t·ρ_t² of every sample. */
function perSample(input: VarianceProxyInput) {
  const { rows, oldLogProb_T, sumPiSquared_T, advantages_T, rolloutIsWeights_T: weights_T } = input;
  const counts_S = maskCounts(rows);
  const samples = rowCount(rows);
  const [advantage_S, weight_S] = [new Float64Array(samples), new Float64Array(samples).fill(1)];
  const [scoreNorm_S, weightedNorm_S] = [new Float64Array(samples), new Float64Array(samples)];
  for (let s = 0; s < samples; s++) {
    let [advantages, weights, norm, weightedNorm] = [0, 0, 0, 0];
    for (let t = at(rows.offsets_S1, s); t < at(rows.offsets_S1, s + 1); t++) {
      if (at(rows.mask_T, t) === 0) continue;
      const score = 1 - 2 * exp(at(oldLogProb_T, t)) + at(sumPiSquared_T, t);
      const weight = weights_T === undefined ? 1 : at(weights_T, t);
      const squared = square(weight);
      advantages += at(advantages_T, t);
      weights += weight;
      norm += (score * squared) / Math.max(squared, SMALLEST_SQUARE);
      weightedNorm += score * squared;
    }
    const count = at(counts_S, s) + EPSILON;
    advantage_S[s] = advantages / count;
    if (weights_T !== undefined) weight_S[s] = weights / count;
    scoreNorm_S[s] = norm;
    weightedNorm_S[s] = weightedNorm;
  }
  return { advantage_S, weight_S, scoreNorm_S, weightedNorm_S };
}

function requireArrays({ rows, rolloutIsWeights_T, ...arrays }: VarianceProxyInput): void {
  const tokens = tokenCount(rows);
  requireTokens('old log-probs', arrays.oldLogProb_T, tokens);
  requireTokens('sums of squared probabilities', arrays.sumPiSquared_T, tokens);
  requireTokens('advantages', arrays.advantages_T, tokens);
  if (rolloutIsWeights_T !== undefined) requireTokens('importance weights', rolloutIsWeights_T, tokens);
}
