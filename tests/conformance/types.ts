/**
 * The contents of a reference file, and the results of an evaluator. The format is described in tests/golden/README.md
 * and MODELS.md. One evaluator is one file in `families/` plus one line in `registry.ts`.
 */

export interface Tolerance {
  readonly abs: number;
  readonly rel: number;
  /** train_step of a model: absolute tolerance by field. */
  readonly fields?: Readonly<Record<string, number>>;
}

export interface GoldenCase {
  readonly name: string;
  readonly kind?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Absent when `skip` is set. `{error: …}`: the input must be refused. */
  readonly expected?: Readonly<Record<string, unknown>>;
  readonly tolerance?: Tolerance;
  readonly required?: boolean;
  readonly skip?: string;
}

export interface GoldenFile {
  readonly family: string;
  readonly name: string;
  readonly tolerance?: Tolerance;
  readonly required?: boolean;
  readonly cases: readonly GoldenCase[];
  /** Other keys at the top of the file (`chat_template`, `base`, …). */
  readonly [key: string]: unknown;
}

/** The results, under the names of `expected`. The harness compares every expected field; a missing one fails. */
export type Outcome = Readonly<Record<string, unknown>>;

export interface Evaluator {
  readonly family: string;
  /** Does this evaluator accept the file? A file that no evaluator accepts is reported as `not implemented`. */
  handles(file: GoldenFile): boolean;
  /** Why this case cannot be computed on this machine, and what to type; its cases count as skipped. */
  missing?(testCase: GoldenCase, file: GoldenFile): string | undefined;
  /**
   * Computes one case. Throws when the input is refused (matches `expected.error`).
   * `folder` is where the case file lies. May replace what is compared by returning `expected` (for expectations that
   * are files, or that may differ where a margin is small) beside `got`.
   */
  evaluate(
    testCase: GoldenCase,
    file: GoldenFile,
    folder: string,
  ): Promise<{ readonly got: Outcome; readonly expected?: Outcome; readonly tolerance?: Tolerance }>;
}
