/**
 * Distillation on the student's own samples from one log-prob of the teacher per token (verl: `distillation_loss` with
 * an estimator; on-policy distillation: Agarwal et al. 2023, arXiv 2306.13649; as a policy gradient: Lu and Thinking
 * Machines 2025). With D_t an estimate of KL(student ‖ teacher) at the sampled token (kl.ts), clamped to
 * ±loss_max_clamp:
 *
 *   supervised        the aggregate of D
 *   policy gradient   a policy loss with advantages −sg(D)
 *
 * k1 can only be used as a policy gradient: its own gradient is that of log π alone, whose expectation is zero. verl
 * refuses `k1`, but not `kl`, which is the same.
 */
import { aggregateInPlace, type BatchTotals } from '../aggregate.ts';
import { float64 } from '../float64.ts';
import { InvalidInputError } from '../../errors.ts';
import { klPenalty } from '../kl.ts';
import type { LossAggMode } from '../names.ts';
import { policyLoss, type PolicyLossInput } from '../policy-loss/index.ts';
import { requireTokens, tokenCount, type Numbers } from '../ragged.ts';
import { clampLosses, lossRange } from './loss-range.ts';

export interface TeacherLossInput extends Omit<PolicyLossInput, 'advantages_T'> {
  /** Log-probs of the sampled tokens, under the teacher. */
  readonly teacherLogProb_T: Numbers;
}

export interface DistillationConfig {
  /** Key `distillation.loss_mode`: an estimator of kl.ts. */
  readonly lossMode: string;
  readonly usePolicyGradient: boolean;
  /** 10 in verl's YAML; absent: no clamp. */
  readonly lossMaxClamp?: number | undefined;
  readonly lossAggMode: LossAggMode;
  readonly totals: BatchTotals;
  /** vanilla, 0.2 and 3; of the policy gradient. */
  readonly policyLossMode?: string | undefined;
  readonly clipRatio?: number | undefined;
  /** clipRatio. */
  readonly clipRatioLow?: number | undefined;
  readonly clipRatioHigh?: number | undefined;
  readonly clipRatioC?: number | undefined;
}

export interface DistillationLoss {
  readonly loss: number;
  readonly dLogProb_T: Float64Array;
  readonly metrics: Readonly<Record<string, number>>;
}

/** @throws InvalidInputError for k1 without policy gradient, an unknown estimator, or arrays of different lengths */
export function teacherLoss(input: TeacherLossInput, config: DistillationConfig): DistillationLoss {
  if (config.lossMode === 'k1' && !config.usePolicyGradient) {
    throw new InvalidInputError(
      'distillation with k1 needs use_policy_gradient, because k1 has no gradient of its own',
      {
        hint: 'set distillation.use_policy_gradient, or use k2 or k3',
      },
    );
  }
  const tokens = tokenCount(input.rows);
  requireTokens('log-probs', input.logProb_T, tokens);
  requireTokens('teacher log-probs', input.teacherLogProb_T, tokens);
  return config.usePolicyGradient ? asPolicyGradient(input, config) : supervised(input, config);
}

function supervised(input: TeacherLossInput, config: DistillationConfig): DistillationLoss {
  const { kl_T, dLogProb_T } = klPenalty(input.logProb_T, input.teacherLogProb_T, config.lossMode);
  const metrics = estimatorMetrics(kl_T, input);
  clampLosses(kl_T, config.lossMaxClamp, dLogProb_T);
  const loss = aggregateInPlace(kl_T, dLogProb_T, input.rows, config.lossAggMode, config.totals);
  return { loss, dLogProb_T, metrics };
}

function asPolicyGradient(input: TeacherLossInput, config: DistillationConfig): DistillationLoss {
  const detached_T = input.detachedLogProb_T ?? input.logProb_T;
  const { kl_T } = klPenalty(detached_T, input.teacherLogProb_T, config.lossMode);
  const metrics = estimatorMetrics(kl_T, input);
  clampLosses(kl_T, config.lossMaxClamp);
  for (let t = 0; t < kl_T.length; t++) kl_T[t] = -(kl_T[t] as number);
  const policy = policyLoss(config.policyLossMode ?? 'vanilla').compute(
    { ...input, advantages_T: kl_T },
    { ...config, clipRatio: config.clipRatio ?? 0.2, clipRatioC: config.clipRatioC ?? 3 },
  );
  const renamed = Object.entries(policy.metrics).map(([name, value]) => [
    name.replace(/^actor\//, 'distillation/'),
    value,
  ]);
  return {
    loss: policy.loss,
    dLogProb_T: policy.dLogProb_T,
    metrics: { ...metrics, ...(Object.fromEntries(renamed) as Record<string, number>) },
  };
}

/** Metrics of the losses before they are clamped. k1 can be negative, so the mean is of absolute values. */
function estimatorMetrics(kl_T: Float64Array, { rows }: TeacherLossInput): Record<string, number> {
  const mask_T = float64(rows.mask_T);
  let [sum, count] = [0, 0];
  for (let t = 0; t < kl_T.length; t++) {
    if ((mask_T[t] as number) === 0) continue;
    sum += Math.abs(kl_T[t] as number);
    count++;
  }
  return { 'distillation/abs_loss': sum / count, ...lossRange(kl_T, mask_T) };
}
