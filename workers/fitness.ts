/**
 * Needs of a worker that are not met: a store that denies access, a missing secret, a full disk, another build of the
 * stack. The worker refuses the jobs that have such a need, announces the reason, and checks again by itself. It
 * continues with its other jobs.
 */
import { errorToJson, UnfitError } from '../core/errors.ts';
import type { ErrorJson } from '../core/errors.ts';

/** Something that a job needs from the worker's process. */
export interface Need {
  /** Shown to users; equal needs have equal names: `the store s3://bucket/team`. */
  readonly name: string;
  /** Every job has this need: while it is unmet the worker takes no job. */
  readonly general?: boolean;
  /**
   * Rejects with UnfitError while the need is unmet. Any other error is ignored, because the job itself will report it.
   */
  readonly check: () => Promise<unknown>;
  /** Replaces `check` once the need was unmet, when `check` alone would pass too easily. */
  readonly checkAgain?: () => Promise<unknown>;
}

/** Pauses between two checks of an unmet need; they double from the first to the longest. */
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
  /** Callers that wait until every general need is met. */
  #waiting: (() => void)[] = [];

  /** `changed` is called when a need becomes unmet or met. */
  constructor(changed: () => void, timing: FitnessTiming = usualTiming) {
    this.#changed = changed;
    this.#timing = timing;
  }

  /** The unmet needs with their reasons, for users. */
  get lacks(): readonly { readonly what: string; readonly error: ErrorJson }[] {
    return [...this.#lacks.values()].map(({ need, error }) => ({ what: need.name, error: errorToJson(error) }));
  }

  /** False while the worker takes no job at all. */
  get takesJobs(): boolean {
    return ![...this.#lacks.values()].some(({ need }) => need.general === true);
  }

  /** Resolves when every general need is met. */
  async whenFit(): Promise<void> {
    while (!this.takesJobs) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Checks the needs in order. Resolves with the first unmet one; one that is known to be unmet is not checked again.
   */
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

  /** A check or a job found that this need is unmet. */
  note(need: Need, error: UnfitError): void {
    if (this.#lacks.has(need.name)) return;
    this.#lacks.set(need.name, { need, error });
    this.#changed();
    this.#lookLater(need);
  }

  /** A job with these needs succeeded: if one is unmet later, its first pause is short again. */
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
