/** The input of a scorer: one response to one dataset row. Names as in verl's `compute_score`, in camel case. */
export interface ScorerInput {
  /** Column `data_source`, which decides the built-in scorer. */
  readonly dataSource: string;
  /** The response as text, without special tokens. */
  readonly solutionStr: string;
  /** Column `reward_model.ground_truth`: usually a text. */
  readonly groundTruth: unknown;
  /** Column `extra_info`. */
  readonly extraInfo?: unknown;
  /** What the model was asked, as text. Only for scorers that ask an endpoint. */
  readonly prompt?: string;
}

/** Extra numbers and texts about a sample, which are logged with it and can be used as a filter metric. */
export type ScoreColumns = Readonly<Record<string, number | string | boolean | null>>;

/** A score and the scorer's extra columns. */
export interface Scored {
  readonly score: number;
  readonly columns: ScoreColumns;
}

/** A scorer's return value: a number, an object with `score`, or a list whose first element is the score. */
export type ScorerReturn =
  | number
  | boolean
  | { readonly score: number; readonly [column: string]: unknown }
  | readonly unknown[];

/** Key `reward.reward_kwargs`. */
export type ScorerSettings = Readonly<Record<string, unknown>>;

/** Limits of one call, which petrel enforces from outside: reward.timeout and reward.memory_limit_mb. */
export interface CallLimits {
  readonly timeoutMs: number;
  readonly memoryMb: number;
}

/** A user's scorer of lists (`reward.reward_manager.name: batch`): one returned value for each input. */
export type ListScorer = (
  inputs: readonly ScorerInput[],
  settings: ScorerSettings,
) => readonly ScorerReturn[] | Promise<readonly ScorerReturn[]>;

/**
 * A scorer. Throws when it cannot score. Built-in ones get the limits; one that may take long ends by itself in time.
 */
export type Scorer = (
  input: ScorerInput,
  settings: ScorerSettings,
  limits?: CallLimits,
) => ScorerReturn | Promise<ScorerReturn>;
