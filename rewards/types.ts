/** What is scored: one response to one dataset row. Names as in verl's `compute_score`, in camel case. */
export interface ScorerInput {
  /** Column `data_source`; chooses the built-in scorer. */
  readonly dataSource: string;
  /** The response as text, special tokens removed. */
  readonly solutionStr: string;
  /** Column `reward_model.ground_truth`: usually a text. */
  readonly groundTruth: unknown;
  /** Column `extra_info`. */
  readonly extraInfo?: unknown;
}

/** Extra figures and texts about a sample, logged with it and usable as a filter metric. */
export type ScoreColumns = Readonly<Record<string, number | string | boolean | null>>;

/** A score, and whatever else the scorer wants to say. */
export interface Scored {
  readonly score: number;
  readonly columns: ScoreColumns;
}

/** What a scorer gives back: a number, an object with `score`, or a list whose first element is the score. */
export type ScorerReturn =
  | number
  | boolean
  | { readonly score: number; readonly [column: string]: unknown }
  | readonly unknown[];

/** Key `reward.reward_kwargs`. */
export type ScorerSettings = Readonly<Record<string, unknown>>;

/** A scorer: pure and synchronous where built in; a user's may be asynchronous. Throws when it can't score. */
export type Scorer = (input: ScorerInput, settings: ScorerSettings) => ScorerReturn | Promise<ScorerReturn>;
