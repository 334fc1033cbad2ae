import type { BatchTotals } from '../aggregate.ts';
import type { LossAggMode, LossNeed, PreferenceLossType } from '../names.ts';
import type { Numbers, RaggedRows } from '../ragged.ts';
import type { RolloutCorrection } from '../rollout-correction/options.ts';

/** One micro-batch, over its response tokens. */
export interface PolicyLossInput {
  readonly rows: RaggedRows;
  /** Log-probs of the policy being trained; the gradient is with respect to these. */
  readonly logProb_T: Numbers;
  /** Log-probs under the policy before this update. */
  readonly oldLogProb_T: Numbers;
  readonly advantages_T: Numbers;
  /** Importance weights of trainer against sampler (verl: `rollout_is_weights`); multiply the loss after clipping. */
  readonly rolloutIsWeights_T?: Numbers | undefined;
  /**
   * What stop-gradient terms read in place of logProb_T, which is the default. A finite difference moves logProb_T and
   * holds these fixed, so that it measures the gradient that the loss means to have.
   */
  readonly detachedLogProb_T?: Numbers | undefined;
  /** Need `rolloutLogProbs`: as recorded while sampling. */
  readonly rolloutLogProb_T?: Numbers | undefined;
  /** Need `refLogProbs`: under the reference policy. */
  readonly refLogProb_T?: Numbers | undefined;
  /** Need `groups`: key of the prompt of each row. Only equality matters; a group must be complete. */
  readonly groups_S?: ArrayLike<unknown> | undefined;
  /** Need `scores`: outcome score of each row. */
  readonly scores_S?: Numbers | undefined;
  /** Need `logZ`: estimated log partition function of the row's prompt, from a head beside the policy. */
  readonly logZ_S?: Numbers | undefined;
}

/** Names and defaults as in verl's `actor` section; those of the recipes as in verl-recipe. */
export interface PolicyLossConfig {
  readonly lossAggMode: LossAggMode;
  readonly totals: BatchTotals;
  /** 0.2; used when low or high is absent. A divergence, not a ratio, in `dppo_tv` and `dppo_kl`. */
  readonly clipRatio: number;
  readonly clipRatioLow?: number | undefined;
  readonly clipRatioHigh?: number | undefined;
  /** 3; the dual clip's bound, greater than 1. In `dppo_*` the bound of the importance ratio. */
  readonly clipRatioC: number;
  /** 1 and 1.05; temperatures of `sapo`. */
  readonly tauPos?: number | undefined;
  readonly tauNeg?: number | undefined;
  /**
   * 0.0002, 1 and 5; `clip_cov`: share of the tokens that it drops, and the covariances between which it draws them.
   */
  readonly clipCovRatio?: number | undefined;
  readonly clipCovLb?: number | undefined;
  readonly clipCovUb?: number | undefined;
  /** 0.0002; `kl_cov`: share of the tokens that get the penalty. */
  readonly klCovRatio?: number | undefined;
  /** 1 when absent, as in verl's code; verl's YAML sets 0.1. `kl_cov`: weight of the penalty. */
  readonly ppoKlCoef?: number | undefined;
  /** No default: `dro` refuses to run without it. Greater than 0. */
  readonly droBeta?: number | undefined;
  /** Key `policy_loss.rollout_correction`; `bypass_mode` refuses to run without it. */
  readonly rolloutCorrection?: RolloutCorrection | undefined;
  /** 1; `sppo`: scale of the advantage (verl-recipe: `sppo_eta`). */
  readonly sppoEta?: number | undefined;
  /** 0.1; `gvpo`: scale of the sequence's log-ratio. */
  readonly gvpoBeta?: number | undefined;
  /**
   * Responses to a prompt (verl: `rollout.n`). `gvpo` refuses groups of another size; absent, each group's own size.
   */
  readonly groupSize?: number | undefined;
  /** 15; `flowrl`: scale of the reward. */
  readonly flowrlBetaCoef?: number | undefined;
  /** 0.1, sigmoid and 0; `online_dpo`: see preference-loss.ts. */
  readonly dpoBeta?: number | undefined;
  readonly dpoLossType?: PreferenceLossType | undefined;
  readonly dpoLabelSmoothing?: number | undefined;
  /**
   * Need `seed`: key of the permutation by which `clip_cov` draws tokens (permutation.ts). A run gives numbers that
   * name the micro-batch, so that each draws differently and a replay draws the same.
   */
  readonly seed?: readonly number[] | undefined;
  /**
   * Replaces how tokens are chosen. Reference cases need it: they recorded a random order, and how torch resolves ties.
   */
  readonly choices?: TokenChoices | undefined;
}

export interface TokenChoices {
  /** An order of 0 … size − 1; `clip_cov` drops the first of it. */
  readonly permutation?: (size: number) => Numbers;
  /** The indices of the `count` largest values; `kl_cov` penalises them. */
  readonly largest?: (values: Float64Array, count: number) => Numbers;
}

export interface PolicyLossResult {
  readonly loss: number;
  readonly dLogProb_T: Float64Array;
  /** verl's names; local means, even when the loss uses totals of the mini-batch. */
  readonly metrics: Readonly<Record<string, number>>;
  /** d loss / d logZ_S, of a loss that needs it. */
  readonly dLogZ_S?: Float64Array;
}

export interface PolicyLoss {
  /**
   * What the loss of a token depends on: a scope wider than the micro-batch needs a forward pass over all of it first.
   */
  readonly scope: 'token' | 'sequence' | 'group' | 'mini-batch';
  /** A recipe that does not provide these is refused; `compute` throws without them. */
  readonly needs: readonly LossNeed[];
  compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult;
}
