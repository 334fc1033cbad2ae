/** How a token is drawn from the probabilities that a model gives. */
export interface SamplingSettings {
  /** 0 = greedy. */
  readonly temperature: number;
  /** 0 = off. Ties with the k-th value are kept. */
  readonly topK: number;
  /** ≥ 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly minP: number;
  /** 1 = off. */
  readonly repetitionPenalty: number;
}
