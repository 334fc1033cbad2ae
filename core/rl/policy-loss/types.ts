import type { BatchTotals } from '../aggregate.ts';
import type { LossAggMode } from '../names.ts';
import type { Numbers, RaggedRows } from '../ragged.ts';

/** One micro-batch, over its response tokens. */
export interface PolicyLossInput {
  readonly rows: RaggedRows;
  /** Log-probs of the policy being trained; the gradient is with respect to these. */
  readonly logProb_T: Numbers;
  /** Under the policy before this update. */
  readonly oldLogProb_T: Numbers;
  readonly advantages_T: Numbers;
  /** Importance weights of trainer against sampler (verl: `rollout_is_weights`); multiply the loss after clipping. */
  readonly rolloutIsWeights_T?: Numbers | undefined;
}

/** Names and defaults as in verl's `actor` section. */
export interface PolicyLossConfig {
  readonly lossAggMode: LossAggMode;
  readonly totals: BatchTotals;
  /** 0.2; used when low or high is absent. */
  readonly clipRatio: number;
  readonly clipRatioLow?: number | undefined;
  readonly clipRatioHigh?: number | undefined;
  /** 3; the dual clip's bound, greater than 1. */
  readonly clipRatioC: number;
  /** 1 and 1.05; temperatures of `sapo`. */
  readonly tauPos?: number | undefined;
  readonly tauNeg?: number | undefined;
}

export interface PolicyLossResult {
  readonly loss: number;
  readonly dLogProb_T: Float64Array;
  /** verl's names; local means, even when the loss uses totals of the mini-batch. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface PolicyLoss {
  /** What the loss of a token depends on: a scope wider than the micro-batch needs a forward pass over all of it first. */
  readonly scope: 'token' | 'sequence' | 'group' | 'mini-batch';
  compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult;
}
