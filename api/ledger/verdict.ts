/** The result of verifying a run's ledger. */

/** A difference between what was expected and what was found. */
export interface LedgerFault {
  /** Key of the object that is wrong. */
  readonly key: string;
  readonly expected: string;
  readonly found: string;
}

/** A branch of the log that a later term does not build on. */
export interface AbandonedBranch {
  readonly term: number;
  /** First position that is no longer part of the log. */
  readonly from: number;
  /** Number of committed updates in the branch. */
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

export interface LedgerVerdict {
  readonly runId: string;
  /** No faults. */
  readonly ok: boolean;
  /** True when all blobs were read and hashed, false when only their headers were read. */
  readonly deep: boolean;
  readonly state: string;
  readonly terms: number;
  /** Committed updates reachable from the newest term, and the number that the recipe asks for. */
  readonly position: number;
  readonly iterations: number;
  /** True when a batch is committed that no update has applied yet. */
  readonly pending: boolean;
  /** Draws from 0 to the cursor; in a fork from its first own draw. */
  readonly draws: number;
  /** Draws by outcome; `--json` prints this object, so the field keeps its first name. */
  readonly fates: Readonly<OutcomeCounts>;
  /** Samples that an applied update trained on. Samples of pending and skipped batches are not counted. */
  readonly samplesTrained: number;
  /** Responses whose tokens and log-probs were compared with what the rollout stored. */
  readonly samplesCompared: number;
  readonly checkpoints: readonly number[];
  readonly evaluations: readonly number[];
  readonly abandoned: readonly AbandonedBranch[];
  /** Number of missing objects that retention had marked for removal, at or below its floor. */
  readonly retired: number;
  /** Checkpoints and weights that no record names: leftovers of work that was done twice. Nothing uses them. */
  readonly unnamed: number;
  readonly objects: number;
  readonly bytes: number;
  readonly faults: readonly LedgerFault[];
}

/** Collects faults; each one is kept once. */
export class Faults {
  readonly #found = new Map<string, LedgerFault>();

  add(key: string, expected: string, found: string): void {
    this.#found.set(`${key}\n${expected}\n${found}`, { key, expected, found });
  }

  /** Adds a fault when the two values differ. */
  equal(key: string, what: string, expected: unknown, found: unknown): void {
    if (!Object.is(expected, found)) this.add(key, `${what} ${show(expected)}`, show(found));
  }

  get all(): readonly LedgerFault[] {
    return [...this.#found.values()];
  }
}

/** A value for a sentence: short, on one line. */
export function show(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 100 ? `${text.slice(0, 97)}…` : text;
}
