import {
  actorTotal,
  reduceActorMetrics,
  type ActorLossConfig,
  type ActorLossInput,
} from '../../../core/rl/actor-total.ts';
import type { BatchTotals } from '../../../core/rl/aggregate.ts';
import { pureEvaluator } from '../evaluators.ts';
import { fields, flatten, inputsOf, maskedRows, numbers, paramsOf } from '../padded.ts';
import { policyLossConfig } from './policy-loss.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const actorTotals = pureEvaluator('losses', { actor_total: total });

/** `split` = ranks → micro-batches → rows. Gradients are summed over micro-batches and averaged over ranks. */
function total(testCase: GoldenCase): Outcome {
  const split = inputsOf(testCase).get('split') as number[][][];
  const config = configOf(testCase);
  const hasEntropy = inputsOf(testCase).has('entropy');
  const logProbGradients: number[][] = [];
  const entropyGradients: number[][] = [];
  const metrics: Record<string, number>[] = [];
  const micro_batch_losses = split.map((microBatches) =>
    microBatches.map((members) => {
      const input = inputOf(testCase, members);
      const result = actorTotal(input, config);
      metrics.push({ ...result.metrics });
      scatter(result.dLogProb_T, input, members, logProbGradients, split.length);
      const dEntropy_T = result.dEntropy_T ?? new Float64Array(result.dLogProb_T.length);
      scatter(dEntropy_T, input, members, entropyGradients, split.length);
      return result.loss;
    }),
  );
  const {
    'actor/kl_loss': kl_loss,
    'actor/kl_coef': _,
    ...reduced
  } = reduceActorMetrics(metrics, {
    ranks: split.length,
    hasTotals: hasTotals(config.totals),
  });
  return {
    micro_batch_losses,
    grads_averaged_over_ranks: { log_probs: logProbGradients, ...(hasEntropy ? { entropy: entropyGradients } : {}) },
    metrics: { ...reduced, ...(kl_loss === undefined ? {} : { kl_loss }) },
  };
}

/** True when the totals are given: then a micro-batch's loss is its part of the mini-batch's, and metrics are sums. */
function hasTotals({ dpSize = 1, ...totals }: ActorLossConfig['totals']): boolean {
  return dpSize > 1 || Object.values(totals).some((total) => total !== undefined);
}

function configOf(testCase: GoldenCase): ActorLossConfig {
  const params = paramsOf(testCase);
  return {
    ...policyLossConfig(testCase.params),
    totals: miniBatchTotals(testCase),
    lossMode: params.has('policy_loss')
      ? fields(params.get('policy_loss') as Record<string, unknown>).string('loss_mode')
      : 'vanilla',
    entropyCoeff: params.optionalNumber('entropy_coeff') ?? 0,
    klLossCoef: params.flag('use_kl_loss') ? params.number('kl_loss_coef') : undefined,
    klLossType: params.has('kl_loss_type') ? params.string('kl_loss_type') : undefined,
  };
}

function miniBatchTotals(testCase: GoldenCase): BatchTotals {
  const params = paramsOf(testCase);
  const lossScaleFactor = params.optionalNumber('loss_scale_factor');
  const dpSize = params.number('dp_size');
  if (!params.flag('global_totals')) return { dpSize, lossScaleFactor };
  const mask = inputsOf(testCase).get('response_mask') as number[][];
  return {
    dpSize,
    lossScaleFactor,
    globalBatchSize: mask.length,
    batchNumTokens: mask.flat().reduce((a, b) => a + b, 0),
  };
}

function inputOf(testCase: GoldenCase, members: readonly number[]): ActorLossInput {
  const inputs = inputsOf(testCase);
  const select = (name: string) => members.map((row) => numbers((inputs.get(name) as unknown[])[row]));
  const optional = (name: string) => (inputs.has(name) ? flatten(select(name)) : undefined);
  return {
    rows: maskedRows(select('response_mask')),
    logProb_T: flatten(select('log_probs')),
    oldLogProb_T: flatten(select('old_log_probs')),
    advantages_T: flatten(select('advantages')),
    rolloutIsWeights_T: optional('rollout_is_weights'),
    refLogProb_T: optional('ref_log_prob'),
    entropy_T: optional('entropy'),
  };
}

function scatter(
  gradient_T: Float64Array,
  { rows }: ActorLossInput,
  members: readonly number[],
  into: number[][],
  ranks: number,
): void {
  members.forEach((row, s) => {
    into[row] = Array.from(gradient_T.subarray(rows.offsets_S1[s], rows.offsets_S1[s + 1]), (value) => value / ranks);
  });
}
