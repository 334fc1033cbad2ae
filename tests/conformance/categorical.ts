/**
 * The output of an engine's log-prob head for one row of logits, in plain arithmetic. It defines what the native
 * kernels and their backward passes must compute (verl: `logprobs_from_logits`, `entropy_from_logits`,
 * `calculate_sum_pi_squared_from_logits`).
 */
import { at } from '../../core/at.ts';
import type { Numbers } from '../../core/rl/ragged.ts';

export interface Categorical {
  readonly logProbs_V: Float64Array;
  /** −Σ p·log p as logsumexp(z) − Σ p·z: NaN when a logit is −∞. */
  readonly entropy: number;
  readonly sumPiSquared: number;
}

export function categorical(logits_V: Numbers): Categorical {
  let largest = -Infinity;
  for (let v = 0; v < logits_V.length; v++) largest = Math.max(largest, at(logits_V, v));
  let scale = 0;
  for (let v = 0; v < logits_V.length; v++) scale += Math.exp(at(logits_V, v) - largest);
  const logSumExp = largest + Math.log(scale);
  const logProbs_V = Float64Array.from(logits_V, (logit) => logit - logSumExp);
  let expectedLogit = 0;
  let sumPiSquared = 0;
  for (let v = 0; v < logits_V.length; v++) {
    const p = Math.exp(at(logProbs_V, v));
    expectedLogit += p * at(logits_V, v);
    sumPiSquared += p * p;
  }
  return { logProbs_V, entropy: logSumExp - expectedLogit, sumPiSquared };
}

/** d(dLogProb · log p[label] + dEntropy · H) / d logits = c·(onehot − p) − e·p·(log p + H). */
export function logitsGradient(
  { logProbs_V, entropy }: Categorical,
  label: number,
  dLogProb: number,
  dEntropy: number,
): Float64Array {
  return logProbs_V.map((logProb, v) => {
    const p = Math.exp(logProb);
    const ofLogProb = dLogProb === 0 ? 0 : dLogProb * ((v === label ? 1 : 0) - p);
    return dEntropy === 0 ? ofLogProb : ofLogProb - dEntropy * p * (logProb + entropy);
  });
}
