/** The result of verifying a run's ledger. */

/** Something that is not as it must be. */
export interface Fault {
  /** The object it was found at. */
  readonly key: string;
  readonly expected: string;
  readonly found: string;
}

/** A branch of the log that a later term does not build on. */
export interface AbandonedBranch {
  readonly term: number;
  /** First position that no longer counts. */
  readonly from: number;
  /** Committed updates in it. */
  readonly iterations: number;
}

/** Number of draws by outcome. `skipped`: the batch was skipped, or a term skips the draw. */
export interface OutcomeCounts {
  trained: number;
  filtered: number;
  failed: number;
  surplus: number;
  stale: number;
  skipped: number;
}

export interface Verdict {
  readonly runId: string;
  /** No faults. */
  readonly ok: boolean;
  /** All blobs were read and hashed, or only their headers. */
  readonly deep: boolean;
  readonly state: string;
  readonly terms: number;
  /** Committed updates reachable from the newest term, and how many the recipe wants. */
  readonly position: number;
  readonly iterations: number;
  /** A batch is committed that no update has applied yet. */
  readonly pending: boolean;
  /** Draws from 0 to the cursor; of a fork from where it begins. */
  readonly draws: number;
  /** Draws by outcome; `--json` prints this object, so the field keeps its first name. */
  readonly fates: Readonly<OutcomeCounts>;
  /** Samples that an applied update learnt from; those of pending and skipped batches are not among them. */
  readonly samplesTrained: number;
  /** Responses whose tokens and log-probs were compared with what the rollout stored. */
  readonly samplesCompared: number;
  readonly checkpoints: readonly number[];
  readonly evaluations: readonly number[];
  readonly abandoned: readonly AbandonedBranch[];
  /** Objects that are gone and that retention had marked for removal, at or below its floor. */
  readonly retired: number;
  /** Checkpoints and weights that no record names: left by work that was done twice, used by nobody. */
  readonly unnamed: number;
  readonly objects: number;
  readonly bytes: number;
  readonly faults: readonly Fault[];
}

/** Collects faults; the same one is told once. */
export class Faults {
  readonly #found = new Map<string, Fault>();

  add(key: string, expected: string, found: string): void {
    this.#found.set(`${key}\n${expected}\n${found}`, { key, expected, found });
  }

  /** Tells when the two differ. */
  equal(key: string, what: string, expected: unknown, found: unknown): void {
    if (!Object.is(expected, found)) this.add(key, `${what} ${show(expected)}`, show(found));
  }

  get all(): readonly Fault[] {
    return [...this.#found.values()];
  }
}

/** A value in a sentence: short, on one line. */
export function show(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 100 ? `${text.slice(0, 97)}…` : text;
}
