/**
 * Distillation by the exact forward KL on the teacher's k most probable tokens (verl: `forward_kl_topk`). At each
 * position, with p the teacher's and q the student's probabilities of these k tokens, both log-probs clamped from below
 * at `log_prob_min_clamp`:
 *
 *   D = max(Σ_k p·(log p − log q), 0)
 *
 * The k probabilities do not add up to 1, so the sum can be negative; it is set to 0 there, without a gradient. There
 * is no gradient to a student's log-prob below the clamp either. The masses (Σ p, Σ q) are those before the clamp. The
 * gradient is with respect to the student's log-probs of the teacher's tokens, K = k values per position.
 */
import { exp } from '../../math/exp.ts';
import { aggregateInPlace, type BatchTotals } from '../aggregate.ts';
import { float64 } from '../float64.ts';
import { InvalidInputError } from '../../errors.ts';
import type { LossAggMode } from '../names.ts';
import { requireTokens, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { clampLosses, lossRange } from './loss-range.ts';

/** `_TK`: k values for each position, one position after the other. */
export interface TopkInput {
  readonly k: number;
  readonly studentLogProb_TK: Numbers;
  readonly teacherLogProb_TK: Numbers;
  /** 1 where the teacher's token is among the student's k most probable ones, else 0; only for metrics. */
  readonly overlap_TK?: Numbers | undefined;
}

export interface TopkKl {
  /** The divergence before it is clamped at 0. */
  readonly kl_T: Float64Array;
  /** d max(kl, 0) / d student's log-prob. */
  readonly dLogProb_TK: Float64Array;
  readonly studentMass_T: Float64Array;
  readonly teacherMass_T: Float64Array;
  /** Number of teacher's tokens among the student's, and the mean of −p·(log p − log q) over these, 0 without any. */
  readonly overlapCount_T?: Float64Array;
  readonly overlapAdvantage_T?: Float64Array;
}

/** @throws InvalidInputError when the arrays don't have k values for each position */
export function forwardKlTopk(input: TopkInput, logProbMinClamp?: number): TopkKl {
  const { k } = input;
  const student_TK = float64(input.studentLogProb_TK);
  const teacher_TK = float64(input.teacherLogProb_TK);
  requirePositions(input);
  const tokens = student_TK.length / k;
  const least = logProbMinClamp ?? -Infinity;
  const [kl_T, studentMass_T, teacherMass_T] = [0, 0, 0].map(() => new Float64Array(tokens)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const dLogProb_TK = new Float64Array(student_TK.length);
  for (let t = 0; t < tokens; t++) {
    let kl = 0;
    let studentMass = 0;
    let teacherMass = 0;
    for (let i = t * k; i < (t + 1) * k; i++) {
      const student = student_TK[i] as number;
      const teacher = teacher_TK[i] as number;
      studentMass += exp(student);
      const unclamped = exp(teacher);
      teacherMass += unclamped;
      const p = teacher >= least ? unclamped : exp(least);
      kl += p * (Math.max(teacher, least) - Math.max(student, least));
      dLogProb_TK[i] = student >= least ? -p : 0;
    }
    if (kl < 0) dLogProb_TK.fill(0, t * k, (t + 1) * k);
    kl_T[t] = kl;
    studentMass_T[t] = studentMass;
    teacherMass_T[t] = teacherMass;
  }
  return { kl_T, dLogProb_TK, studentMass_T, teacherMass_T, ...overlap(input, least) };
}

export interface TopkConfig {
  /** −10 in verl's YAML; absent: no clamp. */
  readonly logProbMinClamp?: number | undefined;
  /** 10 in verl's YAML; absent: no clamp. */
  readonly lossMaxClamp?: number | undefined;
  readonly lossAggMode: LossAggMode;
  readonly totals: BatchTotals;
}

export interface TopkLoss {
  readonly loss: number;
  readonly dLogProb_TK: Float64Array;
  readonly metrics: Readonly<Record<string, number>>;
}

/** The aggregated loss of a micro-batch. @throws InvalidInputError as `forwardKlTopk` and `aggregate` do */
export function topkLoss(rows: RaggedRows, input: TopkInput, config: TopkConfig): TopkLoss {
  const result = forwardKlTopk(input, config.logProbMinClamp);
  const { kl_T, dLogProb_TK } = result;
  requireTokens('distillation losses', kl_T, tokenCount(rows));
  const mask_T = float64(rows.mask_T);
  for (let t = 0; t < kl_T.length; t++) kl_T[t] = Math.max(kl_T[t] as number, 0);
  const metrics = { ...lossRange(kl_T, mask_T), ...topkMetrics(result, mask_T, input.k) };
  const weight_T = new Float64Array(kl_T.length).fill(1);
  clampLosses(kl_T, config.lossMaxClamp, weight_T);
  const loss = aggregateInPlace(kl_T, weight_T, rows, config.lossAggMode, config.totals);
  for (let t = 0; t < kl_T.length; t++) {
    const weight = weight_T[t] as number;
    for (let i = t * input.k; i < (t + 1) * input.k; i++) {
      dLogProb_TK[i] = weight === 0 ? 0 : weight * (dLogProb_TK[i] as number);
    }
  }
  return { loss, dLogProb_TK, metrics };
}

function overlap(input: TopkInput, least: number): Partial<TopkKl> {
  if (input.overlap_TK === undefined) return {};
  const { k } = input;
  const shared_TK = float64(input.overlap_TK);
  const [student_TK, teacher_TK] = [float64(input.studentLogProb_TK), float64(input.teacherLogProb_TK)];
  const tokens = shared_TK.length / k;
  const [overlapCount_T, overlapAdvantage_T] = [new Float64Array(tokens), new Float64Array(tokens)];
  for (let t = 0; t < tokens; t++) {
    let count = 0;
    let sum = 0;
    for (let i = t * k; i < (t + 1) * k; i++) {
      if ((shared_TK[i] as number) === 0) continue;
      const teacher = Math.max(teacher_TK[i] as number, least);
      sum -= exp(teacher) * (teacher - Math.max(student_TK[i] as number, least));
      count++;
    }
    overlapCount_T[t] = count;
    overlapAdvantage_T[t] = count === 0 ? 0 : sum / count;
  }
  return { overlapCount_T, overlapAdvantage_T };
}

function topkMetrics(
  { studentMass_T, teacherMass_T, overlapCount_T, overlapAdvantage_T }: TopkKl,
  mask_T: Float64Array,
  k: number,
): Record<string, number> {
  const [student, teacher] = [range(studentMass_T, mask_T), range(teacherMass_T, mask_T)];
  const masses = {
    'distillation/student_mass': student.mean,
    'distillation/student_mass_min': student.min,
    'distillation/student_mass_max': student.max,
    'distillation/teacher_mass': teacher.mean,
    'distillation/teacher_mass_min': teacher.min,
    'distillation/teacher_mass_max': teacher.max,
  };
  if (overlapCount_T === undefined || overlapAdvantage_T === undefined) return masses;
  const shared_T = overlapCount_T.map((count, t) => (count > 0 && mask_T[t] !== 0 ? 1 : 0));
  const advantage = range(overlapAdvantage_T, shared_T).mean;
  return {
    ...masses,
    'distillation/overlap_ratio': range(overlapCount_T, mask_T).mean / k,
    'distillation/overlap_token_advantage': Number.isNaN(advantage) ? 0 : advantage,
  };
}

/** Range over the valid tokens; NaN without any. */
function range(values_T: Float64Array, mask_T: Float64Array) {
  let [sum, count, min, max] = [0, 0, Infinity, -Infinity];
  for (let t = 0; t < values_T.length; t++) {
    if ((mask_T[t] as number) === 0) continue;
    const value = values_T[t] as number;
    sum += value;
    count++;
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  return count === 0 ? { mean: NaN, min: NaN, max: NaN } : { mean: sum / count, min, max };
}

function requirePositions({ k, studentLogProb_TK, teacherLogProb_TK, overlap_TK }: TopkInput): void {
  if (!(Number.isInteger(k) && k > 0))
    throw new InvalidInputError(`top-k distillation needs k of at least 1, got ${k}`);
  const lengths = [studentLogProb_TK.length, teacherLogProb_TK.length, overlap_TK?.length ?? studentLogProb_TK.length];
  if (lengths.some((length) => length !== lengths[0] || length % k !== 0)) {
    throw new InvalidInputError(`top-k distillation needs ${k} values for each position, got ${lengths.join(', ')}`);
  }
}
