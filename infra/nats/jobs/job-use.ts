/** Notes the run for which a machine worked on a job: from its claim to its end, or to the loss of the machine. */
import type { Stage } from '../../../core/wire/jobs/index.ts';

export interface JobUse {
  /** Instance of the machine. */
  readonly instance: string;
  /** Seconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** `lost`: no later worker could use it. */
  readonly use: 'useful' | 'lost';
}

/** The journal of a rollout job is written so often: what is older is not lost with a machine. */
const journalSeconds = 0.5;

export class JobUses {
  readonly #stage: Stage;
  readonly #tell: (use: JobUse) => void;
  #held: { readonly instance: string; readonly incarnation: string; readonly from: number } | undefined;

  constructor(stage: Stage, tell: (use: JobUse) => void) {
    this.#stage = stage;
    this.#tell = tell;
  }

  /** This process of a machine may start the job: another one that held it before has lost it. */
  claimed(instance: string, incarnation: string, now: number): void {
    if (this.#held?.incarnation === incarnation) return;
    this.lost(now);
    this.#held = { instance, incarnation, from: now / 1_000 };
  }

  /** The holder is gone, has failed, or has given the job back. */
  lost(now: number): void {
    if (this.#held === undefined) return;
    const { instance, from } = this.#held;
    this.#held = undefined;
    const to = now / 1_000;
    const kept = this.#stage === 'rollout' ? Math.max(from, to - journalSeconds) : from;
    this.#tell({ instance, from, to: kept, use: 'useful' });
    this.#tell({ instance, from: kept, to, use: 'lost' });
  }

  /** The job has its result. */
  done(now: number): void {
    if (this.#held === undefined) return;
    const { instance, from } = this.#held;
    this.#held = undefined;
    this.#tell({ instance, from, to: now / 1_000, use: 'useful' });
  }
}
