import type { Numbers, RaggedRows } from '../ragged.ts';

/** A whole training batch: estimators never see mini-batches. */
export interface AdvantageBatch {
  readonly rows: RaggedRows;
  /** Outcome score of each sample: the sum of its token rewards. */
  readonly scores_S: Numbers;
  /** Key of the prompt of each sample; samples with equal keys form a group. */
  readonly groups_S: ArrayLike<unknown>;
}

export interface AdvantageConfig {
  /** true; false is Dr.GRPO (key `algorithm.norm_adv_by_std_in_grpo`). */
  readonly normAdvByStdInGrpo?: boolean | undefined;
}

export interface Advantages {
  readonly advantages_T: Float64Array;
  readonly returns_T: Float64Array;
}

export interface AdvantageEstimator {
  /** verl's name, key `algorithm.adv_estimator`. */
  readonly name: string;
  compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages;
}
