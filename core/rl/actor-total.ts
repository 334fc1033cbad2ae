/**
 * The actor's whole loss on one micro-batch (verl: `ppo_loss`):
 *
 *   total = policy loss − entropy_coeff · entropy + kl_loss_coef · KL(policy ‖ reference)
 *           + positive_nll_coef · loss on positive examples (positive-nll.ts; not part of verl)
 *
 * The first three share the aggregation mode. All divide by the totals of the mini-batch, so gradients of micro-batches
 * add up to that of the mini-batch exactly. The result is what the engine's `backward` takes: a coefficient for each
 * token's log-prob and entropy.
 */
import { InvalidInputError } from '../errors.ts';
import { aggregate } from './aggregate.ts';
import { klPenalty } from './kl.ts';
import { positiveExampleNll } from './positive-nll.ts';
import { policyLoss, type PolicyLossConfig, type PolicyLossInput, type PolicyLossResult } from './policy-loss/index.ts';
import { countedRows, requireTokens, tokenCount, type Numbers } from './ragged.ts';
import { withScratch } from './scratch.ts';

/** refLogProb_T is needed when klLossCoef is given, too. */
export interface ActorLossInput extends PolicyLossInput {
  /** Needed when entropyCoeff isn't 0; without a coefficient it is only reported. */
  readonly entropy_T?: Numbers | undefined;
}

export interface ActorLossConfig extends PolicyLossConfig {
  /** Key `actor.policy_loss.loss_mode`. */
  readonly lossMode: string;
  readonly entropyCoeff: number;
  /** Absent: no KL loss (`actor.use_kl_loss: false`). */
  readonly klLossCoef?: number | undefined;
  /** Key `actor.kl_loss_type`, e.g. `low_var_kl`. */
  readonly klLossType?: string | undefined;
  /** Absent: no loss on positive examples, which needs scores_S. */
  readonly positiveNllCoef?: number | undefined;
  /** Valid tokens of the mini-batch in rows that scored above 0. Absent: those at hand. */
  readonly positiveTokens?: number | undefined;
}

export interface ActorLossResult {
  readonly loss: number;
  readonly dLogProb_T: Float64Array;
  /** Absent when the entropy takes no part. */
  readonly dEntropy_T?: Float64Array;
  /** One micro-batch; `reduceActorMetrics` joins them. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** `own`: the result of a policy loss of the user's own, in place of the one that the config names. */
export function actorTotal(input: ActorLossInput, config: ActorLossConfig, own?: PolicyLossResult): ActorLossResult {
  requireInputs(input, config);
  return withScratch(() => total({ ...input, rows: countedRows(input.rows) }, config, own));
}

function total(input: ActorLossInput, config: ActorLossConfig, own: PolicyLossResult | undefined): ActorLossResult {
  const policy = own ?? policyLoss(config.lossMode).compute(input, config);
  const metrics: Record<string, number> = { ...policy.metrics, 'actor/pg_loss': policy.loss };
  let loss = policy.loss;
  const dLogProb_T = policy.dLogProb_T;
  let dEntropy_T: Float64Array | undefined;

  if (input.entropy_T !== undefined) {
    const entropy = aggregate(input.entropy_T, input.rows, config.lossAggMode, config.totals);
    metrics['actor/entropy_loss'] = entropy.value;
    if (config.entropyCoeff !== 0) {
      loss -= config.entropyCoeff * entropy.value;
      dEntropy_T = new Float64Array(entropy.weights_T.length);
      for (let t = 0; t < dEntropy_T.length; t++)
        dEntropy_T[t] = -config.entropyCoeff * (entropy.weights_T[t] as number);
    }
  }
  if (config.klLossCoef !== undefined && input.refLogProb_T !== undefined) {
    const penalty = klPenalty(input.logProb_T, input.refLogProb_T, config.klLossType ?? 'low_var_kl');
    const kl = aggregate(penalty.kl_T, input.rows, config.lossAggMode, config.totals);
    metrics['actor/kl_loss'] = kl.value;
    metrics['actor/kl_coef'] = config.klLossCoef;
    loss += config.klLossCoef * kl.value;
    for (let t = 0; t < dLogProb_T.length; t++) {
      const weight = kl.weights_T[t] as number;
      if (weight === 0) continue;
      const ofPenalty = config.klLossCoef * weight * (penalty.dLogProb_T[t] as number);
      dLogProb_T[t] = (dLogProb_T[t] as number) + ofPenalty;
    }
  }
  if (config.positiveNllCoef !== undefined && input.scores_S !== undefined) {
    const imitation = positiveExampleNll(input.logProb_T, input.rows, input.scores_S, config.positiveTokens);
    metrics['actor/positive_nll_loss'] = imitation.loss;
    loss += config.positiveNllCoef * imitation.loss;
    addScaled(dLogProb_T, config.positiveNllCoef, imitation.dLogProb_T);
  }
  return { loss, dLogProb_T, metrics, ...(dEntropy_T === undefined ? {} : { dEntropy_T }) };
}

function addScaled(into_T: Float64Array, factor: number, values_T: Float64Array): void {
  for (let t = 0; t < into_T.length; t++) into_T[t] = (into_T[t] as number) + factor * (values_T[t] as number);
}

/** A requested loss term that cannot be computed must be an error, and so must arrays of different lengths. */
function requireInputs(input: ActorLossInput, config: ActorLossConfig): void {
  const tokens = tokenCount(input.rows);
  requireTokens('log-probs', input.logProb_T, tokens);
  requireTokens('old log-probs', input.oldLogProb_T, tokens);
  requireTokens('advantages', input.advantages_T, tokens);
  if (config.entropyCoeff !== 0 && input.entropy_T === undefined)
    throw new InvalidInputError('entropy_coeff needs entropies');
  if (config.klLossCoef !== undefined && input.refLogProb_T === undefined) {
    throw new InvalidInputError('the KL loss needs log-probs of the reference policy');
  }
  if (config.positiveNllCoef !== undefined && input.scores_S === undefined)
    throw new InvalidInputError('the loss on positive examples needs the scores');
}

export interface MetricReduction {
  /** 1; each rank's loss is multiplied by their number. */
  readonly ranks?: number;
  /** true: losses were divided by totals of the mini-batch, so they add up. false: they are local means. */
  readonly hasTotals?: boolean;
}

/** Metrics of a mini-batch from those of its micro-batches, all ranks together: losses add up, ratios are averaged. */
export function reduceActorMetrics(
  microBatches: readonly Readonly<Record<string, number>>[],
  { ranks = 1, hasTotals = true }: MetricReduction = {},
): Record<string, number> {
  const reduced: Record<string, number> = {};
  for (const name of new Set(microBatches.flatMap((metrics) => Object.keys(metrics)))) {
    const values = microBatches.flatMap((metrics) => metrics[name] ?? []);
    const extreme = name.endsWith('_max') ? Math.max : name.endsWith('_min') ? Math.min : undefined;
    if (extreme !== undefined) {
      reduced[name] = values.reduce((a, b) => extreme(a, b));
      continue;
    }
    const isLoss = name.endsWith('/loss') || (name.endsWith('_loss') && name !== 'distillation/abs_loss');
    reduced[name] = values.reduce((sum, value) => sum + value, 0) / (hasTotals && isLoss ? ranks : values.length);
  }
  return reduced;
}
