/**
 * What a module of your own exports to be a policy loss, an advantage estimator or a sampler:
 * docs/learn/change-a-loss.md, docs/do/own-sampler.md. It runs in a thread of its own and gets copies, so it may write
 * to what it is given. Letters behind a name are its shape, as in ragged.ts: T one value per response token, S one per
 * response, all responses one after the other.
 */
import type { LossAggMode, OwnEstimatorNeed, OwnLossNeed } from '../names.ts';

/** The responses of a batch. */
export interface OwnRows {
  /** Response s has the tokens offsets_S1[s] … offsets_S1[s + 1] − 1 of every array over T. */
  readonly offsets_S1: Int32Array;
  /** 1 on tokens that the policy produced, 0 on others, which no loss may depend on. */
  readonly mask_T: Float64Array;
}

/** One micro-batch. The gradient is with respect to logProb_T. */
export interface OwnLossInput {
  readonly rows: OwnRows;
  /** Log-probs of the policy that is trained. */
  readonly logProb_T: Float64Array;
  readonly settings: OwnLossSettings;
  /**
   * Combines values per token into the batch's loss, by `actor.loss_agg_mode` and the totals of the whole mini-batch;
   * weights_T[t] is d value / d values_T[t]. For the scope `sequence`; petrel does it itself for the scope `token`.
   */
  aggregate(values_T: Float64Array): { readonly value: number; readonly weights_T: Float64Array };
}

/** Keys of the recipe's section `actor`. */
export interface OwnLossSettings {
  readonly clipRatioLow: number;
  readonly clipRatioHigh: number;
  readonly clipRatioC: number;
  readonly lossAggMode: LossAggMode;
}

/** What has no gradient. The check of the gradient holds all of it fixed. */
export interface Detached {
  /** The same numbers as the input's logProb_T, for stop-gradient terms. */
  readonly logProb_T: Float64Array;
  /** Log-probs under the policy before the update. */
  readonly oldLogProb_T: Float64Array;
  readonly advantages_T: Float64Array;
  /** Need `rolloutLogProbs`: as recorded while sampling. */
  readonly rolloutLogProb_T?: Float64Array;
  /** Need `refLogProbs`: under the reference policy. */
  readonly refLogProb_T?: Float64Array;
  /** Need `entropy`: of the policy that is trained, at each token. */
  readonly entropy_T?: Float64Array;
  /** Need `values`: those of the critic. */
  readonly values_T?: Float64Array;
  /** Need `seed`: names the micro-batch, for a choice that must be the same in a replay. */
  readonly seed?: Float64Array;
}

/** Scope `token`: each token's loss depends on its own log-prob only. petrel combines them. */
export interface TokenLoss {
  readonly loss_T: Float64Array;
  /** d loss_T[t] / d logProb_T[t]. */
  readonly dLoss_T: Float64Array;
  /** Numbers for the run's metrics, as `actor/own/<name>`. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Scope `sequence`: the loss of the micro-batch, as `aggregate` gives it. */
export interface SequenceLoss {
  readonly loss: number;
  /** d loss / d logProb_T. */
  readonly dLogProb_T: Float64Array;
  readonly metrics?: Readonly<Record<string, number>>;
}

interface OwnLoss {
  /** What it reads beside old log-probs and advantages. A recipe that does not give it is refused. */
  readonly needs: readonly OwnLossNeed[];
  /** Equal inputs give equal bits. A recipe with `deterministic: true` or `replay` needs this. */
  readonly deterministic?: boolean;
  /** Names terms whose gradient is meant to differ from the derivative of their value; `petrel plan` shows them. */
  readonly straightThrough?: string | true;
}

/** Export it as `loss`, or as the default. */
export type OwnPolicyLoss =
  | (OwnLoss & { readonly scope: 'token'; compute(input: OwnLossInput, detached: Detached): TokenLoss })
  | (OwnLoss & { readonly scope: 'sequence'; compute(input: OwnLossInput, detached: Detached): SequenceLoss });

/** A whole training batch. */
export interface OwnEstimatorBatch {
  readonly rows: OwnRows;
  /** The score of each response. */
  readonly scores_S: Float64Array;
  /** The same on the last token of each response, 0 elsewhere. */
  readonly rewards_T: Float64Array;
  /** Number of the prompt of each response: 0, 1, 2 … in order of first appearance. */
  readonly groups_S: Int32Array;
  /** Need `values`: those of the critic. */
  readonly values_T?: Float64Array;
}

/** Keys of the recipe's section `algorithm`. */
export interface OwnEstimatorConfig {
  readonly gamma: number;
  readonly lam: number;
  readonly normAdvByStdInGrpo: boolean;
}

/** One advantage per response, or one per token. */
export type OwnAdvantages =
  | { readonly advantages_S: Float64Array }
  /** Returns are the targets of a critic; without them they are the advantages. */
  | { readonly advantages_T: Float64Array; readonly returns_T?: Float64Array };

/** Export it as `estimator`, or as the default. */
export interface OwnAdvantageEstimator {
  /** What it reads beside scores and groups. A recipe that does not give it is refused. */
  readonly needs: readonly OwnEstimatorNeed[];
  /** Equal inputs give equal bits. A recipe with `deterministic: true` needs this. */
  readonly deterministic?: boolean;
  compute(batch: OwnEstimatorBatch, config: OwnEstimatorConfig): OwnAdvantages;
}

/** A row of the data. */
export interface OwnSamplerRow {
  readonly dataSource: string;
  readonly groundTruth?: unknown;
  readonly extraInfo?: unknown;
}

/** What the responses to a row scored in the last batch. */
export interface OwnSamplerResult {
  readonly row: number;
  /** Pass over the data, from 0. */
  readonly pass: number;
  /** One of each response; null: it could not be scored. */
  readonly scores: readonly (number | null)[];
}

export interface OwnSamplerInput {
  /** Key `seed`. */
  readonly seed: number;
  /** The batch that was made last; 0 before the first. */
  readonly iteration: number;
  /** Number of rows; they are numbered from 0. */
  readonly rows: number;
  /** Every row, in the first call only, which is made when the run is created. */
  readonly facts?: readonly OwnSamplerRow[];
  /** Results of the last batch, in the order of its draws; empty in the first call. */
  readonly results: readonly OwnSamplerResult[];
  /** What the last call returned as `state`; null in the first call. */
  readonly state: unknown;
}

export interface OwnSampling {
  /**
   * Weight of each row, 0 or more, and of one at least more than 0. A row with 0 is passed over. Where
   * `data.gen_batch_size` is larger than a batch, rows are drawn from so many with these weights.
   */
  readonly weights: ArrayLike<number>;
  /** Anything that JSON can hold, at most 1 MiB; absent: null. */
  readonly state?: unknown;
}

/** Export it as `sampler`, or as the default. */
export interface OwnSampler {
  /** Equal inputs give equal results. A recipe with `deterministic: true` needs this. */
  readonly deterministic?: boolean;
  compute(input: OwnSamplerInput): OwnSampling;
}
