/** What a batch looks like in numbers: part of its record, so equal batches give equal metrics. */
import { samplesResponses } from '../../../core/run-kinds.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { aggregatedValue, batchTotals } from '../../../core/rl/aggregate.ts';
import { dataMetrics } from '../../../core/rl/data-metrics.ts';
import { groupsWithoutSignal, standardDeviation } from '../../../core/rl/group-signal.ts';
import type { LossAggMode } from '../../../core/rl/names.ts';
import { rolloutProbsDiff } from '../../../core/rl/rollout-probs-diff.ts';
import { gradientPower } from '../../../core/rl/variance-proxy.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { Layout, MadeOutputs } from './batch-outputs.ts';
import type { BatchRewards } from './rewards.ts';
import { rowsOf } from '../samples/rows.ts';
import type { Composition } from '../samples/samples.ts';

/**
 * `before`: the batch before the rollout correction, with the entropy of the policy that sampled when it was made with
 * its log-probs.
 */
export function batchMetrics(
  input: AdvantageInput,
  composition: Composition,
  batch: BatchTensors,
  { scores_S, rewards_S, metrics }: Omit<BatchRewards, 'rewards_T'>,
  { layout: before, entropy_T, sumPiSquared_T }: MadeOutputs,
): Record<string, number> {
  const { samples } = composition;
  const counts = {
    'training/samples': samples.length,
    'training/failed_samples': composition.failed,
    'training/tokens': batch.tokens_N.length,
    'training/response_tokens': batch.scored_T.length,
  };
  if (!samplesResponses(input.kind) || samples.length === 0) return counts;
  return {
    ...counts,
    ...dataMetrics({
      rows: rowsOf(batch),
      scores_S,
      rewards_S,
      promptLengths_S: samples.map((sample) => sample.prompt.length),
      responseLengths_S: samples.map((sample) => sample.response.length),
      maxPromptLength: Number.POSITIVE_INFINITY,
      maxResponseLength: input.algorithm.maxResponseLength,
      advantages_T: batch.advantages_T,
      returns_T: batch.returns_T,
      values_T: batch.values_T,
    }),
    'critic/score/std': standardDeviation(scores_S),
    ...baselineMetrics(composition),
    ...(input.algorithm.pfPpo && { 'training/drawn_samples': new Set(batch.microSamples).size }),
    ...((input.algorithm.filterGroups ?? input.algorithm.oversampling) && filterMetrics(composition)),
    ...(composition.draws.some(({ samples }) => samples.length > 1) && {
      'training/groups_without_signal': withoutSignal(composition, scores_S),
    }),
    ...scorerMetrics(composition),
    ...metrics,
    ...(entropy_T === undefined ? {} : { 'actor/entropy': entropyOf(input, before, entropy_T) }),
    ...(sumPiSquared_T && before.oldLogProbs_T
      ? gradientPower({
          rows: rowsOf(batch),
          oldLogProb_T: before.oldLogProbs_T,
          sumPiSquared_T,
          advantages_T: batch.advantages_T,
          rolloutIsWeights_T: batch.rolloutIsWeights_T,
        })
      : {}),
    ...(before.oldLogProbs_T && before.rolloutLogProbs_T && !input.algorithm.bypass
      ? rolloutProbsDiff(before.oldLogProbs_T, before.rolloutLogProbs_T, before.mask_T)
      : {}),
  };
}

function withoutSignal({ samples }: Composition, scores_S: Float32Array): number {
  return groupsWithoutSignal(
    scores_S,
    samples.map(({ draw }) => draw),
  );
}

/** The score of greedy responses, where the estimator compares with them. */
function baselineMetrics({ samples }: Composition): Record<string, number> {
  const byDraw = new Map(samples.flatMap(({ draw, baseline }) => (baseline === undefined ? [] : [[draw, baseline]])));
  if (byDraw.size === 0) return {};
  return { 'critic/baselines/mean': [...byDraw.values()].reduce((sum, one) => sum + one, 0) / byDraw.size };
}

/** What dynamic sampling or oversampling did. */
function filterMetrics({ draws }: Composition): Record<string, number> {
  const countOf = (outcome: string) => draws.filter(({ fate }) => fate === outcome).length;
  return {
    'train/num_gen_batches': 1 + Math.max(0, ...draws.map(({ wave = 0 }) => wave)),
    'training/filtered_groups': countOf('filtered'),
    'training/surplus_groups': countOf('surplus'),
  };
}

/** Means of the numbers that the scorer gave beside the score, over the samples that have them. */
function scorerMetrics({ samples }: Composition): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const [name, value] of samples.flatMap(({ columns }) => Object.entries(columns))) {
    const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: sum + value, count: count + 1 });
  }
  return Object.fromEntries(
    [...sums].map(([name, { sum, count }]) => [`reward_extra/${name.replaceAll('/', '_')}/mean`, sum / count]),
  );
}

/** The entropy as in the loss (verl): aggregated in its mode, over the whole batch. */
function entropyOf({ algorithm: { loss } }: AdvantageInput, batch: Layout, entropy_T: Float32Array): number {
  const rows = rowsOf(batch);
  return aggregatedValue(entropy_T, rows, loss.lossAggMode as LossAggMode, batchTotals(rows, loss.lossScaleFactor));
}
