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
import { exp } from '../math/exp.ts';
import { clamp } from './clamp.ts';
import { InvalidInputError } from '../errors.ts';
import { KL_TYPES, type KlEstimator } from './names.ts';
import { requireTokens, type Numbers } from './ragged.ts';
import { scratch, scratchFloat64 } from './scratch.ts';

/** A penalty per token and its slope; inside of `withScratch` both are scratch arrays. */
export interface KlPenalty {
  readonly kl_T: Float64Array;
  /** d kl / d log π. The derivative by the reference's log-prob is its negative. */
  readonly dLogProb_T: Float64Array;
}

/** Fills in value and derivative of every token from the difference of its log-probs. */
type Estimator = (difference_T: Float64Array, kl_T: Float64Array, dLogProb_T: Float64Array) => void;

const k1: Estimator = (difference_T, kl_T, dLogProb_T) => {
  kl_T.set(difference_T);
  dLogProb_T.fill(1);
};

const absolute: Estimator = (difference_T, kl_T, dLogProb_T) => {
  for (let t = 0; t < difference_T.length; t++) {
    const d = difference_T[t] as number;
    kl_T[t] = Math.abs(d);
    dLogProb_T[t] = Math.sign(d);
  }
};

const k2: Estimator = (difference_T, kl_T, dLogProb_T) => {
  for (let t = 0; t < difference_T.length; t++) {
    const d = difference_T[t] as number;
    kl_T[t] = 0.5 * d * d;
    dLogProb_T[t] = d;
  }
};

const k3: Estimator = (difference_T, kl_T, dLogProb_T) => {
  for (let t = 0; t < difference_T.length; t++) {
    const d = difference_T[t] as number;
    const r = clamp(-d, -20, 20);
    const ratio = exp(r);
    const value = ratio - r - 1;
    kl_T[t] = clamp(value, -10, 10);
    dLogProb_T[t] = Math.abs(d) >= 20 || Math.abs(value) >= 10 ? 0 : 1 - ratio;
  }
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
  const [policy_T, reference_T] = [scratchFloat64(logProb_T), scratchFloat64(refLogProb_T)];
  const difference_T = scratch(policy_T.length);
  for (let t = 0; t < difference_T.length; t++) difference_T[t] = (policy_T[t] as number) - (reference_T[t] as number);
  const kl_T = scratch(difference_T.length);
  const dLogProb_T = scratch(difference_T.length);
  estimate(difference_T, kl_T, dLogProb_T);
  return { kl_T, dLogProb_T: type.endsWith('+') ? difference_T : dLogProb_T };
}

function estimatorOf(type: string): Estimator {
  const name = type.endsWith('+') ? type.slice(0, -1) : type;
  const base = Object.hasOwn(ESTIMATORS, name) ? ESTIMATORS[name as KlEstimator] : undefined;
  if (base === undefined)
    throw new InvalidInputError(`unknown KL estimator "${type}"`, { hint: `one of ${KL_TYPES.join(', ')}` });
  return base;
}
