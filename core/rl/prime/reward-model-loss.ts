/**
 * Losses of PRIME's implicit reward model (verl-recipe: `compute_ce_dpo_loss_rm`, `compute_detach_dpo_loss_rm`; Cui et
 * al. 2025, arXiv 2502.01456). With q = log π_rm − log π_ref of each response token, Q_s = Σ_t q, and the accuracy a_s
 * in [0, 1]:
 *
 *   ce       mean over rows of the binary cross-entropy of σ(β·Q_s) against a_s
 *   none     mean of −log σ(±(β·Q_s − β·mean Q of rivals)), + for a_s > 0, − otherwise. Rivals of a right row are the
 *            rows of its group with a lower accuracy, of a wrong one those with a higher; without rivals 0
 *   bon_rm   the SUM of the same, each row weighted by n·(share of its group with β·Q ≤ β·Q_s)^(n − 1)
 *   bon_acc  the same with accuracies in place of Q
 *
 * Rivals and shares use the group's Q before this update, as constants. As in torch, the logarithms of `ce` are bounded
 * below by −100 and its derivative vanishes where σ has reached 0 or 1; that of the others does not.
 */
import { at } from '../../at.ts';
import { log } from '../../math/log.ts';
import { pow } from '../../math/pow.ts';
import { rowMeanWeight, type BatchTotals } from '../aggregate.ts';
import { rowsByGroup } from '../advantages/groups.ts';
import { float64 } from '../float64.ts';
import { InvalidInputError } from '../../errors.ts';
import { logSigmoid, sigmoid } from '../log-sigmoid.ts';
import { PRIME_LOSSES, type PrimeLossName } from '../names.ts';
import { rowCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { rowSums, spreadOverRow } from '../row-sums.ts';

export interface PrimeLossInput {
  readonly rows: RaggedRows;
  /** The gradient is with respect to these. */
  readonly q_T: Numbers;
  readonly accuracies_S: Numbers;
  /** Key of the prompt of each row; all but `ce` compare rows of a group. */
  readonly groups_S: ArrayLike<unknown>;
  /**
   * Q_s of every row before this update (verl-recipe: `Q_bc`), with which rows are compared. Absent: of detachedQ_T.
   */
  readonly groupQ_S?: Numbers | undefined;
  /**
   * What comparisons read in place of q_T, which is the default. A finite difference moves q_T and holds these fixed.
   */
  readonly detachedQ_T?: Numbers | undefined;
}

export interface PrimeLossConfig {
  readonly loss: string;
  /** 0.05 (verl-recipe: `beta_train`). */
  readonly beta: number;
  /** Absent ones are taken from the rows at hand. */
  readonly totals?: BatchTotals | undefined;
}

export interface PrimeLossResult {
  readonly loss: number;
  readonly dQ_T: Float64Array;
}

/** @throws InvalidInputError for an unknown loss, or arrays of different lengths */
export function primeLoss(input: PrimeLossInput, config: PrimeLossConfig): PrimeLossResult {
  const kind = PRIME_LOSSES.find((known) => known === config.loss);
  if (kind === undefined) {
    throw new InvalidInputError(`unknown loss of the implicit reward model "${config.loss}"`, {
      hint: `one of ${PRIME_LOSSES.join(', ')}`,
    });
  }
  requireRows(input);
  const { rows, accuracies_S } = input;
  const sums_S = rowSums(input.q_T, rows);
  const own_S = input.detachedQ_T === undefined ? sums_S : rowSums(input.detachedQ_T, rows);
  const weights_S = rowWeights(kind, input, own_S, config);
  const baselines_S = kind === 'ce' ? undefined : rivalMeans(input, own_S, config.beta);
  const mask_T = float64(rows.mask_T);
  const dQ_T = new Float64Array(mask_T.length);
  let loss = 0;
  for (let s = 0; s < sums_S.length; s++) {
    const logit = config.beta * at(sums_S, s);
    const accuracy = at(accuracies_S, s);
    const { value, slope } =
      baselines_S === undefined ? crossEntropy(logit, accuracy) : contrast(logit - at(baselines_S, s), accuracy > 0);
    loss += at(weights_S, s) * value;
    spreadOverRow(at(weights_S, s) * config.beta * slope, s, rows, mask_T, dQ_T);
  }
  return { loss, dQ_T };
}

interface Term {
  readonly value: number;
  /** Slope by the logit. */
  readonly slope: number;
}

function crossEntropy(logit: number, label: number): Term {
  const p = sigmoid(logit);
  const value = -(label * Math.max(log(p), -100) + (1 - label) * Math.max(log(1 - p), -100));
  const spreadOfP = p * (1 - p);
  return { value, slope: ((p - label) / Math.max(spreadOfP, 1e-12)) * spreadOfP };
}

function contrast(difference: number, right: boolean): Term {
  const sign = right ? 1 : -1;
  return { value: -logSigmoid(sign * difference), slope: -sign * sigmoid(-sign * difference) };
}

/** 1 / rows, or the best-of-n weights. */
function rowWeights(
  kind: PrimeLossName,
  input: PrimeLossInput,
  own_S: Float64Array,
  config: PrimeLossConfig,
): Float64Array {
  const weights_S = new Float64Array(own_S.length);
  if (kind === 'ce' || kind === 'none') return weights_S.fill(rowMeanWeight(config.totals ?? {}, own_S.length));
  const byAccuracy = kind === 'bon_acc';
  const [mine_S, others_S] = byAccuracy ? [input.accuracies_S, input.accuracies_S] : [own_S, input.groupQ_S ?? own_S];
  const scale = byAccuracy ? 1 : config.beta;
  for (const members of rowsByGroup(input.groups_S).values()) {
    const size = members.length;
    for (const s of members) {
      const share = members.filter((other) => at(others_S, other) * scale <= at(mine_S, s) * scale).length / size;
      weights_S[s] = size * pow(share, size - 1);
    }
  }
  return weights_S;
}

/** β times the mean Q of the rows of the group that a row is compared with; 0 without any. */
function rivalMeans(
  { accuracies_S, groups_S, groupQ_S }: PrimeLossInput,
  own_S: Float64Array,
  beta: number,
): Float64Array {
  const q_S = groupQ_S ?? own_S;
  const means_S = new Float64Array(own_S.length);
  for (const members of rowsByGroup(groups_S).values()) {
    for (const s of members) {
      const own = at(accuracies_S, s);
      const isRival = (other: number) => (own > 0 ? at(accuracies_S, other) < own : at(accuracies_S, other) > own);
      const rivals = members.filter(isRival);
      const total = rivals.reduce((sum, other) => sum + at(q_S, other), 0);
      if (rivals.length > 0) means_S[s] = (total / rivals.length) * beta;
    }
  }
  return means_S;
}

function requireRows({ rows, accuracies_S, groups_S, groupQ_S }: PrimeLossInput): void {
  const lengths = [accuracies_S.length, groups_S.length, groupQ_S?.length ?? rowCount(rows)];
  if (lengths.some((length) => length !== rowCount(rows))) {
    throw new InvalidInputError(
      `the implicit reward model needs accuracies, groups and Q of ${rowCount(rows)} rows, got ${lengths.join(', ')}`,
    );
  }
}

export interface PrimeAccuracy {
  /**
   * Mean over groups of the share of pairs that Q orders as the accuracies do, weighted by the difference of
   * accuracies.
   */
  readonly pairs: number;
  /** Share of rows where the sign of Q is that of accuracy − ½ (verl: `compute_dpo_abs_accuracy`). */
  readonly signs: number;
}

/**
 * How well Q agrees with the accuracies (verl: `compute_dpo_accuracy`). A group whose rows are equally accurate counts
 * ½.
 */
export function primeAccuracy(input: PrimeLossInput): PrimeAccuracy {
  requireRows(input);
  const sums_S = rowSums(input.q_T, input.rows);
  const groups = [...rowsByGroup(input.groups_S).values()];
  const agreement = groups.reduce((sum, members) => sum + pairAgreement(members, sums_S, input.accuracies_S), 0);
  const signs = sums_S.reduce(
    (count, q, s) => count + (Math.sign(q) === Math.sign(2 * at(input.accuracies_S, s) - 1) ? 1 : 0),
    0,
  );
  return { pairs: agreement / groups.length, signs: signs / sums_S.length };
}

function pairAgreement(members: readonly number[], sums_S: Float64Array, accuracies_S: Numbers): number {
  let [agreeing, total] = [0, 0];
  members.forEach((a, i) => {
    for (const b of members.slice(i + 1)) {
      const difference = at(accuracies_S, a) - at(accuracies_S, b);
      const sameOrder = at(sums_S, a) - at(sums_S, b) > 0 === difference > 0;
      total += Math.abs(difference);
      if (sameOrder) agreeing += Math.abs(difference);
    }
  });
  return total === 0 ? 0.5 : agreeing / total;
}
