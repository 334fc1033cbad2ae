/**
 * Estimators of KL(policy ‖ reference) from the log-probs of the sampled token
 * (verl: `kl_penalty`, `kl_penalty_forward`; keys `actor.kl_loss_type`, `algorithm.kl_penalty`;
 * Schulman, "Approximating KL divergence", 2020). With d = log π − log π_ref:
 *
 *   k1, kl           d
 *   abs              |d|
 *   k2, mse          ½ d²
 *   k3, low_var_kl   e^r − r − 1 with r = clamp(−d, ±20), clamped to ±10
 *
 * A "+" keeps the value and takes the gradient of k2 (straight through), which is the unbiased one. That gradient isn't
 * clamped, not even where the value is.
 */
import { InvalidInputError } from '../errors.ts';
import { float64, valueAt } from './float64.ts';
import { KL_TYPES, type KlEstimator } from './names.ts';
import { requireTokens, type Numbers } from './ragged.ts';

export interface KlPenalty {
  readonly kl_T: Float64Array;
  /** d kl / d log π. The derivative by the reference's log-prob is its negative. */
  readonly dLogProb_T: Float64Array;
}

/** Value and derivative at one token. */
type Estimator = (difference: number) => readonly [value: number, derivative: number];

const k1: Estimator = (d) => [d, 1];
const absolute: Estimator = (d) => [Math.abs(d), Math.sign(d)];
const k2: Estimator = (d) => [0.5 * d * d, d];
const k3: Estimator = (d) => {
  const r = clamp(-d, 20);
  const value = Math.exp(r) - r - 1;
  const clamped = Math.abs(d) > 20 || Math.abs(value) > 10;
  return [clamp(value, 10), clamped ? 0 : 1 - Math.exp(r)];
};

const ESTIMATORS = {
  kl: k1,
  k1,
  abs: absolute,
  mse: k2,
  k2,
  low_var_kl: k3,
  k3,
} satisfies Record<KlEstimator, Estimator>;

/** @throws InvalidInputError for an unknown estimator (also for `full`, which needs whole distributions). */
export function klPenalty(logProb_T: Numbers, refLogProb_T: Numbers, type: string): KlPenalty {
  requireTokens('reference log-probs', refLogProb_T, logProb_T.length);
  const estimate = estimatorOf(type);
  const [logProbs, refLogProbs] = [float64(logProb_T), float64(refLogProb_T)];
  const kl_T = new Float64Array(logProbs.length);
  const dLogProb_T = new Float64Array(logProbs.length);
  for (let t = 0; t < kl_T.length; t++) {
    [kl_T[t], dLogProb_T[t]] = estimate(valueAt(logProbs, t) - valueAt(refLogProbs, t));
  }
  return { kl_T, dLogProb_T };
}

function estimatorOf(type: string): Estimator {
  const name = type.endsWith('+') ? type.slice(0, -1) : type;
  const base = Object.hasOwn(ESTIMATORS, name) ? ESTIMATORS[name as KlEstimator] : undefined;
  if (base === undefined)
    throw new InvalidInputError(`unknown KL estimator "${type}"`, { hint: `one of ${KL_TYPES.join(', ')}` });
  return type.endsWith('+') ? (d) => [base(d)[0], d] : base;
}

function clamp(value: number, limit: number): number {
  return Math.min(Math.max(value, -limit), limit);
}
