/**
 * PRIME in a run (verl-recipe: `prime`; Cui et al. 2025, arXiv 2502.01456). The component `rewardModel` begins as the
 * model that is trained. With q = log π_rm − log π_ref of each response token it learns the scores of whole responses
 * (core/rl/prime/reward-model-loss.ts), and q gives each token a reward (process-reward.ts), from which the advantages
 * are made (advantages/prime.ts).
 *
 *   update: after    the batch has the advantages, from the reward model at the state before the update
 *   update: before   the update trains the reward model first, and makes the advantages from the new one. The batch has
 *                    none: they are a function of the batch and the state, so a replay makes the same
 *
 * verl computes q at temperature 1; here both models have the policy's temperature, as the reference's log-probs do.
 */
import { forwardOne } from '../../core/ports/one-lane.ts';
import { at } from '../../core/at.ts';
import { PauseError } from '../../core/errors.ts';
import type { Call, PolicyEngine } from '../../core/ports/policy.ts';
import type { BatchLayout, LossSettings } from '../../core/records/schema.ts';
import { prime } from '../../core/rl/advantages/prime.ts';
import { rewardsAtLastToken } from '../../core/rl/advantages/outcomes.ts';
import { dataMetrics } from '../../core/rl/data-metrics.ts';
import { processRewards } from '../../core/rl/prime/process-reward.ts';
import { primeAccuracy, primeLoss } from '../../core/rl/prime/reward-model-loss.ts';
import { rowSums } from '../../core/rl/row-sums.ts';
import type { AlgorithmSettings } from '../../core/wire/jobs.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { everySampleOnce } from './every-sample-once.ts';
import type { SampledLayout } from './every-sample-once.ts';
import type { Coefficients, StepTotals } from './loss-terms.ts';
import { gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';
import type { Sample } from './samples.ts';

type PrimeSettings = NonNullable<LossSettings['prime']>;

type OfBatch = Pick<BatchTensors, 'advantages_T' | 'returns_T'>;

/** Does the reward model learn from a batch before it rewards its tokens? */
export const learnsFirst = (loss: LossSettings | undefined): boolean => loss?.prime?.update === 'before';

/** Must the batch be made with log-probs of the reward model, as it was before the update? */
export const readsRewardModel = ({ rewardModel }: AlgorithmSettings): boolean =>
  rewardModel !== undefined && (!learnsFirst(rewardModel.loss) || comparesGroups(rewardModel.loss));

/** Does its loss read all responses to a prompt at once? */
export const comparesGroups = ({ prime: settings }: LossSettings): boolean =>
  settings !== undefined && settings.lossType !== 'ce';

/**
 * What the reward model learns: the `acc` that the scorer returns beside the score, else the score. Throws PauseError
 * `AccuracyOutOfRange`.
 */
function accuraciesOf(samples: readonly Sample[]): Float32Array {
  return Float32Array.from(samples, ({ columns, score, draw }) => {
    const accuracy = columns['acc'] ?? score;
    if (accuracy >= 0 && accuracy <= 1) return accuracy;
    throw new PauseError(
      'AccuracyOutOfRange',
      `prime learns accuracies between 0 and 1, and the scorer gave ${accuracy} to a response of draw ${draw}`,
      { hint: 'let the scorer return a score, or acc beside it, between 0 and 1' },
    );
  });
}

/** Log-probs of the response tokens under the reward model, [T]. */
async function rewardModelLogProbs(
  engine: PolicyEngine,
  layout: SampledLayout,
  batchLayout: BatchLayout | undefined,
  temperature: number,
  call: Call,
): Promise<Float32Array> {
  const logProbs_T = new Float32Array(layout.scored_T.length);
  for (const { packed, tokens_P } of everySampleOnce(layout, batchLayout, () => call.tick?.())) {
    const { outputs } = await forwardOne(engine, packed, { temperature, wants: ['logProbs'], keep: false }, call);
    tokens_P.forEach((t, p) => (logProbs_T[t] = at(outputs.logProbs, p)));
  }
  return logProbs_T;
}

/** log π_rm − log π_ref of each token. */
function logRatios(logProbs_T: Float32Array, refLogProbs_T: Float32Array | undefined): Float64Array {
  const reference_T = present(refLogProbs_T);
  return Float64Array.from(logProbs_T, (logProb, t) => logProb - at(reference_T, t));
}

/** Q of each response: what comparisons within a group read. */
const responseRatios = (q_T: Float64Array, batch: Pick<BatchTensors, 'scoredOffsets_S1' | 'mask_T'>) =>
  Float32Array.from(rowSums(q_T, rowsOf(batch)));

type PrimeBatch = Pick<BatchTensors, 'scoredOffsets_S1' | 'mask_T' | 'rewards_S' | 'groups_S' | 'accuracies_S'>;

/** The advantages, and how well the reward model judges the batch. */
function primeAdvantages(
  batch: PrimeBatch,
  q_T: Float64Array,
  settings: PrimeSettings,
): OfBatch & { readonly metrics: Readonly<Record<string, number>> } {
  const rows = rowsOf(batch);
  const accuracies_S = present(batch.accuracies_S);
  const groups_S = present(batch.groups_S);
  const processRewards_T = processRewards(rows, q_T, accuracies_S, settings);
  const { advantages_T, returns_T } = prime.compute(
    { rows, rewards_T: rewardsAtLastToken(batch.rewards_S, rows), groups_S, processRewards_T },
    { rewardDpoCoef: settings.rewardDpoCoef, rewardGtCoef: settings.rewardGtCoef },
  );
  const { pairs, signs } = primeAccuracy({ rows, q_T, accuracies_S, groups_S });
  return {
    advantages_T: Float32Array.from(advantages_T),
    returns_T: Float32Array.from(returns_T),
    metrics: {
      'reward_model/dpo_acc': pairs,
      'reward_model/dpo_acc_abs': signs,
      'reward_model/reward': mean(rowSums(processRewards_T, rows)),
      'reward_model/raw_reward': mean(rowSums(q_T, rows)),
    },
  };
}

/** What a batch for PRIME has beside its samples: nothing in a run without. */
export function primeTensors(
  { rewardModel }: AlgorithmSettings,
  samples: readonly Sample[],
  batch: Omit<PrimeBatch, 'accuracies_S' | 'rewards_S'> & Pick<BatchTensors, 'refLogProbs_T' | 'rewards_S'>,
  rewardModelLogProbs_T: Float32Array | undefined,
): { readonly tensors: Partial<BatchTensors>; readonly metrics: Readonly<Record<string, number>> } {
  if (rewardModel === undefined || samples.length === 0) return { tensors: {}, metrics: {} };
  const accuracies_S = accuraciesOf(samples);
  if (rewardModelLogProbs_T === undefined) return { tensors: { accuracies_S }, metrics: {} };
  const q_T = logRatios(rewardModelLogProbs_T, batch.refLogProbs_T);
  const compared = comparesGroups(rewardModel.loss) && { groupQ_S: responseRatios(q_T, batch) };
  if (learnsFirst(rewardModel.loss)) return { tensors: { accuracies_S, ...compared }, metrics: {} };
  const { metrics, ...advantages } = primeAdvantages({ ...batch, accuracies_S }, q_T, present(rewardModel.loss.prime));
  return { tensors: { accuracies_S, ...compared, ...advantages }, metrics };
}

/** Coefficients of the reward model's forward pass on a micro-batch. */
export function primeCoefficients(
  settings: PrimeSettings,
  batch: BatchTensors,
  micro: MicroBatch,
  logProbs_P: Float32Array,
  totals: StepTotals,
): Coefficients {
  const { samples, tokens_P } = micro;
  const of = <Values extends Float32Array | Int32Array>(values_S: Values | undefined): Float64Array => {
    const known_S = present(values_S);
    return Float64Array.from(samples, (b) => at(known_S, b));
  };
  const { loss, dQ_T } = primeLoss(
    {
      rows: { offsets_S1: micro.rowOffsets_S1, mask_T: gather(batch.mask_T, tokens_P) },
      q_T: logRatios(logProbs_P, gather(present(batch.refLogProbs_T), tokens_P)),
      accuracies_S: of(batch.accuracies_S),
      groups_S: of(batch.groups_S),
      ...(batch.groupQ_S && { groupQ_S: of(batch.groupQ_S) }),
    },
    { loss: settings.lossType, beta: settings.beta, totals },
  );
  return { loss, gradients: { logProbs: Float32Array.from(dQ_T) }, metrics: {} };
}

/** The batch with the advantages that the reward model gives after it has learned from it. */
export async function withPrimeAdvantages(
  engine: PolicyEngine,
  { loss }: { readonly loss: LossSettings },
  layout: BatchLayout | undefined,
  batch: BatchTensors,
  call: Call,
): Promise<{ readonly batch: BatchTensors; readonly metrics: Readonly<Record<string, number>> }> {
  const logProbs_T = await rewardModelLogProbs(engine, batch, layout, loss.temperature, call);
  const q_T = logRatios(logProbs_T, batch.refLogProbs_T);
  const { metrics, ...advantages } = primeAdvantages(batch, q_T, present(loss.prime));
  const whole = { ...batch, ...advantages };
  return { batch: whole, metrics: { ...metrics, ...advantageMetrics(whole) } };
}

/** Metrics that a batch without advantages cannot have. */
export const isOfAdvantages = (name: string): boolean => /^critic\/(?:advantages|returns)\//.test(name);

function advantageMetrics(batch: BatchTensors): Record<string, number> {
  const lengths_S = Array.from(
    batch.rewards_S,
    (_, s) => at(batch.scoredOffsets_S1, s + 1) - at(batch.scoredOffsets_S1, s),
  );
  const all = dataMetrics({
    rows: rowsOf(batch),
    scores_S: batch.rewards_S,
    rewards_S: batch.rewards_S,
    promptLengths_S: lengths_S,
    responseLengths_S: lengths_S,
    maxPromptLength: Number.POSITIVE_INFINITY,
    maxResponseLength: Number.POSITIVE_INFINITY,
    advantages_T: batch.advantages_T,
    returns_T: batch.returns_T,
    values_T: undefined,
  });
  return Object.fromEntries(Object.entries(all).filter(([name]) => isOfAdvantages(name)));
}

const rowsOf = ({ scoredOffsets_S1, mask_T }: Pick<BatchTensors, 'scoredOffsets_S1' | 'mask_T'>) => ({
  offsets_S1: scoredOffsets_S1,
  mask_T,
});

const mean = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function present<T>(tensor: T | undefined): T {
  if (tensor === undefined) throw new Error('the batch was not made for prime');
  return tensor;
}
