/**
 * What a worker lacks for its jobs: a store that does not let it in, a secret, room, the stack's build. The worker refuses
 * the jobs that need it, tells everybody why, and looks again by itself. Its other jobs go on.
 */
import { errorToJson, UnfitError } from '../core/errors.ts';
import type { ErrorJson } from '../core/errors.ts';

/** Something that jobs need of the process that does them. */
export interface Need {
  /** For people, and the same for equal needs: `the store s3://bucket/team`. */
  readonly name: string;
  /** Every job needs it: without it the worker takes none. */
  readonly general?: boolean;
  /** Rejects with UnfitError while it is lacking. Any other error says nothing: the job itself will meet it. */
  readonly check: () => Promise<unknown>;
  /** What is checked instead once it was lacking, when `check` alone would pass too easily. */
  readonly checkAgain?: () => Promise<unknown>;
}

/** Pauses between two looks at what is lacking: they double from the first to the longest. */
export interface FitnessTiming {
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

const usualTiming: FitnessTiming = { firstPauseMs: 500, longestPauseMs: 30_000 };

interface Lack {
  readonly need: Need;
  readonly error: UnfitError;
}

export class Fitness {
  readonly #changed: () => void;
  readonly #timing: FitnessTiming;
  readonly #lacks = new Map<string, Lack>();
  /** Next pause by need. A need whose check passes but whose jobs still fail keeps its long pause. */
  readonly #pauses = new Map<string, number>();
  /** Those who wait until nothing is lacking that every job needs. */
  #waiting: (() => void)[] = [];

  /** `changed` is called when something begins or ceases to be lacking. */
  constructor(changed: () => void, timing: FitnessTiming = usualTiming) {
    this.#changed = changed;
    this.#timing = timing;
  }

  /** What is lacking now, for people. */
  get lacks(): readonly { readonly what: string; readonly error: ErrorJson }[] {
    return [...this.#lacks.values()].map(({ need, error }) => ({ what: need.name, error: errorToJson(error) }));
  }

  /** False while the worker takes no job at all. */
  get takesJobs(): boolean {
    return ![...this.#lacks.values()].some(({ need }) => need.general === true);
  }

  /** Resolves when nothing is lacking that every job needs. */
  async whenFit(): Promise<void> {
    while (!this.takesJobs) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Checks the needs in order. Resolves with the first that is lacking; one that is known to be is not checked again. */
  async firstLack(needs: readonly Need[]): Promise<UnfitError | undefined> {
    for (const need of needs) {
      const error = this.#lacks.get(need.name)?.error ?? (await lackOf(need.check));
      if (error !== undefined) {
        this.note(need, error);
        return error;
      }
    }
    return undefined;
  }

  /** A check or a job found that this is lacking. */
  note(need: Need, error: UnfitError): void {
    if (this.#lacks.has(need.name)) return;
    this.#lacks.set(need.name, { need, error });
    this.#changed();
    this.#lookLater(need);
  }

  /** A job that needs these succeeded: the next time one is lacking it is looked at soon again. */
  proven(needs: readonly Need[]): void {
    for (const { name } of needs) this.#pauses.delete(name);
  }

  #lookLater(need: Need): void {
    const pauseMs = this.#pauses.get(need.name) ?? this.#timing.firstPauseMs;
    this.#pauses.set(need.name, Math.min(this.#timing.longestPauseMs, 2 * pauseMs));
    setTimeout(() => void this.#look(need), pauseMs).unref();
  }

  async #look(need: Need): Promise<void> {
    const error = await lackOf(need.checkAgain ?? need.check);
    if (error !== undefined) {
      this.#lacks.set(need.name, { need, error });
      return this.#lookLater(need);
    }
    this.#lacks.delete(need.name);
    this.#changed();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

async function lackOf(check: Need['check']): Promise<UnfitError | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    return error instanceof UnfitError ? error : undefined;
  }
}
