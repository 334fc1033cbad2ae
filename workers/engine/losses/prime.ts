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
import { forwardOne } from '../../../core/ports/one-lane.ts';
import { at } from '../../../core/at.ts';
import { PauseError } from '../../../core/errors.ts';
import type { Call, PolicyEngine } from '../../../core/ports/policy.ts';
import type { BatchLayout, LossSettings } from '../../../core/records/schema.ts';
import { prime } from '../../../core/rl/advantages/prime.ts';
import { rewardsAtLastToken } from '../../../core/rl/advantages/outcomes.ts';
import { dataMetrics } from '../../../core/rl/data-metrics.ts';
import { processRewards } from '../../../core/rl/prime/process-reward.ts';
import { primeAccuracy, primeLoss } from '../../../core/rl/prime/reward-model-loss.ts';
import { float32 } from '../../../core/rl/float32.ts';
import { rowSums } from '../../../core/rl/row-sums.ts';
import type { AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { Coefficients, StepTotals } from './loss-terms.ts';
import { cutMicroBatch, gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';
import type { Sample } from '../samples/samples.ts';
import { withTokens } from '../samples/stored-batch.ts';
import type { ReadableBatch } from '../samples/stored-batch.ts';

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

/** What the reward model says of each response token, and the mask of the batch. */
interface Rated {
  /** log π_rm − log π_ref. */
  readonly q_T: Float64Array;
  readonly mask_T: Uint8Array;
}

/** Every sample once, in the micro-batches of the first epoch. */
async function rated(
  engine: PolicyEngine,
  batch: ReadableBatch,
  batchLayout: BatchLayout | undefined,
  temperature: number,
  call: Call,
): Promise<Rated> {
  const { scoredOffsets_S1, microOffsets_M1 } = batch.index;
  const q_T = new Float64Array(at(scoredOffsets_S1, -1));
  const mask_T = new Uint8Array(q_T.length);
  const seen = new Set<number>();
  const all = batch.index.rewards_S.length;
  for (let m = 0; m + 1 < microOffsets_M1.length && seen.size < all; m++) {
    const { tensors, samples } = await batch.micro(m);
    const placeOf = (b: number) => (tensors.places_S === undefined ? b : at(tensors.places_S, b));
    const others = [...new Set(samples)].filter((b) => !seen.has(placeOf(b)));
    if (others.length === 0) continue;
    for (const b of others) seen.add(placeOf(b));
    const micro = cutMicroBatch(tensors, Int32Array.from(others), batchLayout);
    const options = { temperature, wants: ['logProbs'], keep: false } as const;
    const { outputs } = await forwardOne(engine, micro.packed, options, call);
    const ratios_P = logRatios(outputs.logProbs, gather(present(tensors.refLogProbs_T), micro.tokens_P));
    const mask_P = gather(tensors.mask_T, micro.tokens_P);
    others.forEach((b, i) => {
      const row = [at(micro.rowOffsets_S1, i), at(micro.rowOffsets_S1, i + 1)] as const;
      q_T.set(ratios_P.subarray(...row), at(scoredOffsets_S1, placeOf(b)));
      mask_T.set(mask_P.subarray(...row), at(scoredOffsets_S1, placeOf(b)));
    });
    call.tick?.();
  }
  return { q_T, mask_T };
}

/** log π_rm − log π_ref of each token. */
function logRatios(logProbs_T: Float32Array, refLogProbs_T: Float32Array | undefined): Float64Array {
  const reference_T = present(refLogProbs_T);
  const q_T = new Float64Array(logProbs_T.length);
  for (let t = 0; t < q_T.length; t++) q_T[t] = (logProbs_T[t] as number) - at(reference_T, t);
  return q_T;
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
    advantages_T: float32(advantages_T),
    returns_T: float32(returns_T),
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
  batch: ReadableBatch,
  call: Call,
): Promise<{ readonly batch: ReadableBatch; readonly metrics: Readonly<Record<string, number>> }> {
  const { q_T, mask_T } = await rated(engine, batch, layout, loss.temperature, call);
  const known = { ...batch.index, mask_T };
  const { metrics, ...advantages } = primeAdvantages(known, q_T, present(loss.prime));
  return {
    batch: withTokens(batch, advantages),
    metrics: { ...metrics, ...advantageMetrics({ ...known, ...advantages }) },
  };
}

/** Metrics that a batch without advantages cannot have. */
export const isOfAdvantages = (name: string): boolean => /^critic\/(?:advantages|returns)\//.test(name);

function advantageMetrics(
  batch: OfBatch & Pick<BatchTensors, 'rewards_S' | 'scoredOffsets_S1' | 'mask_T'>,
): Record<string, number> {
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
