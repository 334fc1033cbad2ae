/** What the losses of micro-batches read and give. */
import type { OutputGradients } from '../../../core/ports/policy.ts';
import type { BatchTotals } from '../../../core/rl/aggregate.ts';

export interface Coefficients {
  readonly loss: number;
  readonly gradients: OutputGradients;
  readonly metrics: Readonly<Record<string, number>>;
}

/** The outputs of a forward pass that a loss of log-probs reads. */
export interface LossInputs {
  readonly logProbs: Float32Array;
  readonly entropy?: Float32Array;
}

/** The numbers of tokens and samples are always known: sft and pairs divide by them. */
export type StepTotals = BatchTotals & {
  readonly batchNumTokens: number;
  readonly globalBatchSize: number;
  /** Valid tokens in rows that scored above 0. */
  readonly positiveTokens: number;
};
