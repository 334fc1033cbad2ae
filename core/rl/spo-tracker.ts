/**
 * What single-stream policy optimisation remembers of each prompt (verl-recipe: `spo`, keys `trainer.spo.*`; Xu and
 * Ding 2025, arXiv 2509.13232): a Beta distribution of its success rate, whose past counts less the more the policy has
 * moved since the prompt was last sampled. The state is two plain numbers per prompt.
 *
 *   start     α = N₀·(k + ½)/(N + 1), β = N₀·(N − k + ½)/(N + 1) from k successes in N scored responses, with
 *             N₀ = 1/(1 − ρ_low); α = β = ½ without any
 *   rate      p̂ = α/(α + β), the baseline of the advantages in advantages/spo.ts
 *   ρ         2^(−D/D_half) within [ρ_low, ρ_high], D the mean |Δ log π| over the valid tokens of the prompt's last
 *             response
 *   update    α ← ρ·α + s, β ← ρ·β + 1 − s with the score s
 *   sampling  a prompt is drawn with the weight √(p̂·(1 − p̂)) + ε
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { pow } from '../math/pow.ts';
import { float64, valueAt } from './float64.ts';
import { maskedMean } from './masked-stats.ts';
import { requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

export interface PromptTracker {
  readonly alpha: number;
  readonly beta: number;
}

export interface RhoBounds {
  /** Key `rho.clip_lower`, at least 0 and less than 1. */
  readonly lowest: number;
  /** 0.96 */
  readonly highest?: number | undefined;
  /** 0.06; the distance at which ρ is one half. */
  readonly halfDistance?: number | undefined;
}

/**
 * A tracker from `count` responses (key `offline_N`) that were scored before the run. A score above 0 is a success;
 * scores beyond the first `count` are ignored, where verl draws `count` of them at random.
 *
 * @throws InvalidInputError when `lowestRho` isn't at least 0 and less than 1.
 */
export function startTracker(scores: Numbers, count: number, lowestRho: number): PromptTracker {
  if (!(lowestRho >= 0 && lowestRho < 1)) {
    throw new InvalidInputError(`the lowest rho must be at least 0 and less than 1, got ${lowestRho}`);
  }
  if (count === 0) return { alpha: 0.5, beta: 0.5 };
  let successes = 0;
  for (let i = 0; i < Math.min(count, scores.length); i++) if (at(scores, i) > 0) successes++;
  const weight = 1 / (1 - lowestRho);
  return {
    alpha: (weight * (successes + 0.5)) / (count + 1),
    beta: (weight * (count - successes + 0.5)) / (count + 1),
  };
}

/** p̂: the expected score of the prompt. */
export function promptRate({ alpha, beta }: PromptTracker): number {
  return alpha / (alpha + beta);
}

/** The tracker after a response with this score, when the past counts ρ times. */
export function updateTracker({ alpha, beta }: PromptTracker, score: number, rho: number): PromptTracker {
  return { alpha: rho * alpha + score, beta: rho * beta + 1 - score };
}

/**
 * D of each row: mean |Δ log π| of its valid tokens, from the log-probs when it was sampled and those under the policy
 * of today.
 */
export function distancesOfRows(oldLogProb_T: Numbers, logProb_T: Numbers, rows: RaggedRows): Float64Array {
  requireTokens('old log-probs', oldLogProb_T, tokenCount(rows));
  requireTokens('log-probs', logProb_T, tokenCount(rows));
  const [before_T, now_T, mask_T] = [float64(oldLogProb_T), float64(logProb_T), float64(rows.mask_T)];
  const distance_T = new Float64Array(now_T.length);
  for (let t = 0; t < distance_T.length; t++) distance_T[t] = Math.abs(valueAt(before_T, t) - valueAt(now_T, t));
  return new Float64Array(rowCount(rows)).map((_, s) => {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    return maskedMean(distance_T.subarray(from, to), mask_T.subarray(from, to));
  });
}

/**
 * ρ of a prompt whose last response lies at this distance from the policy of today. A prompt that was never sampled has
 * the distance 0.
 */
export function rhoOf(distance: number, { lowest, highest = 0.96, halfDistance = 0.06 }: RhoBounds): number {
  return Math.min(Math.max(pow(2, -distance / halfDistance), lowest), highest);
}

/** Weight with which the prompt is drawn; `exploration` (0.05) keeps the certain ones in play. */
export function promptSamplingWeight(tracker: PromptTracker, exploration = 0.05): number {
  const rate = promptRate(tracker);
  return Math.sqrt(rate * (1 - rate)) + exploration;
}
