/**
 * The lease of a trainer. A trainer works for one run at a time, because loading a run's state takes long. The run
 * keeps the trainer until it pauses, ends or ends its turn (activities/stages/turns.ts), however long its rollouts and
 * scorers take. Other runs wait in the order of their first request, with the state `queued`.
 *
 * A standby follows a run that another trainer leads. It leads from the first job on that a leader would do, and it
 * gives way to a run that waits for a trainer.
 */
import { RetryableError } from '../core/errors.ts';
import { trainerShareOf } from '../core/wire/jobs/index.ts';
import type { TrainerShare } from '../core/wire/jobs/index.ts';
import type { JobMessage } from '../core/wire/messages.ts';

/** A run and the URL of the store that it is in. */
export interface Leaseholder extends TrainerShare {
  readonly runId: string;
  readonly store: string;
}

/** The run, and the part of it, for which a job leases the trainer. */
export function leaseOf({ runId, store, input }: JobMessage): Leaseholder {
  return { runId, store, ...trainerShareOf(input) };
}

export interface LeasePorts {
  /** The lease was taken or released, or another run waits for it: others must learn it at once. */
  readonly changed: () => void;
  /** The run released the trainer, so its state need not stay in memory. */
  readonly freed: (runId: string) => void;
  /** The run keeps the trainer for other components; another trainer has these. */
  readonly partFreed: (runId: string, components: readonly string[]) => void;
  /** Does the store say that this stack still works on the run? Rejects when the store cannot be read. */
  readonly isActive: (holder: Leaseholder) => Promise<boolean>;
  readonly log: (line: string) => void;
}

export interface LeaseTimes {
  /** How often `isActive` is called while another run waits. */
  readonly askEveryMs: number;
  /** A waiting run that has not asked for this long leaves the queue. */
  readonly waiterMs: number;
}

const leasedTo = ({ runId }: Leaseholder): string => `the trainer is busy with ${runId}`;

export class TrainerLease {
  readonly #ports: LeasePorts;
  readonly #times: LeaseTimes;
  readonly #nowMs: () => number;
  #holder: Leaseholder | undefined;
  /** The jobs' components, part by part, where the holder is divided. */
  readonly #parts = new Map<string, readonly string[]>();
  #standsBy = false;
  #jobs = 0;
  /** The lease was released while a job was in flight: it ends with that job. */
  #released = false;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** Refused runs with the time of their last request, in the order of the first one. */
  readonly #waiting = new Map<string, number>();

  constructor(ports: LeasePorts, times: LeaseTimes, nowMs: () => number = () => performance.now()) {
    this.#ports = ports;
    this.#times = times;
    this.#nowMs = nowMs;
  }

  get runId(): string | undefined {
    return this.#holder?.runId;
  }

  /** The components that it is leased for; undefined for all. */
  get components(): readonly string[] | undefined {
    return this.#parts.size === 0 ? undefined : [...this.#parts.values()].flat();
  }

  /** Does it follow its run, which another trainer leads? */
  get standsBy(): boolean {
    return this.#standsBy;
  }

  /** Does another run wait for the trainer? */
  get isWanted(): boolean {
    return this.#firstWaiting() !== undefined;
  }

  /** Is the trainer leased to the run, as its leader or as its standby, for these components? Absent: for all. */
  has({ runId, components, standby }: Omit<Leaseholder, 'store'>): boolean {
    return (
      this.#holder?.runId === runId &&
      this.#standsBy === (standby === true) &&
      (components === undefined || this.#parts.has(components.join(' ')))
    );
  }

  /** Does the holder need the trainer for another part than these components in the first place? */
  isSecond({ runId, components }: Pick<Leaseholder, 'runId' | 'components'>): boolean {
    const [first] = this.#parts.keys();
    return this.#holder?.runId === runId && first !== undefined && components?.join(' ') !== first;
  }

  /**
   * Why a job of this run must wait; undefined when it may start. A standby waits in no order: every other run comes
   * first.
   */
  refuse({ runId, standby }: Pick<Leaseholder, 'runId' | 'standby'>): string | undefined {
    if (this.#holder?.runId === runId) return undefined;
    const wait = () => standby === true || this.#wait(runId);
    if (this.#standsBy && standby !== true && this.#holder !== undefined) this.release(this.#holder.runId);
    if (this.#holder !== undefined) {
      this.#askIfActive(this.#holder);
      wait();
      return leasedTo(this.#holder);
    }
    const first = this.#firstWaiting();
    if (first !== undefined && first !== runId) {
      wait();
      return `the trainer goes to ${first} next`;
    }
    this.#waiting.delete(runId); // so that it does not hold up the others when nobody claims its job
    return undefined;
  }

  /**
   * Takes or keeps the lease and runs a job of the run. Throws RetryableError `TrainerLeased` when another run has
   * taken the lease since `refuse`.
   */
  async use<T>(holder: Leaseholder, job: () => Promise<T>): Promise<T> {
    if (this.#holder !== undefined && this.#holder.runId !== holder.runId)
      throw new RetryableError('TrainerLeased', leasedTo(this.#holder));
    const taken = !this.has(holder);
    this.#holder = holder;
    this.#standsBy = holder.standby === true;
    if (holder.components !== undefined) this.#parts.set(holder.components.join(' '), holder.components);
    this.#released = false;
    this.#jobs += 1;
    this.#waiting.delete(holder.runId);
    if (taken) this.#ports.changed();
    try {
      return await job();
    } finally {
      this.#jobs -= 1;
      if (this.#released) this.release(holder.runId);
    }
  }

  /** The run paused or ended. */
  release(runId: string): void {
    this.#waiting.delete(runId);
    if (this.#holder?.runId !== runId) return;
    this.#released = this.#jobs > 0;
    if (this.#released) return;
    this.#holder = undefined;
    this.#standsBy = false;
    this.#parts.clear();
    this.#ports.freed(runId);
    this.#ports.changed();
  }

  /**
   * Another trainer works for the run, or only for these components of it. So it leaves the queue here, and what the
   * other one has need not be in memory twice.
   */
  trainedElsewhere(runId: string, components?: readonly string[]): void {
    if (components === undefined || this.#holder?.runId !== runId) {
      this.#waiting.delete(runId);
      if (this.#jobs === 0) this.release(runId);
      return;
    }
    if (this.#jobs > 0) return;
    const twice = [...this.#parts].filter(([, own]) => own.some((name) => components.includes(name)));
    if (twice.length === 0) return;
    if (twice.length === this.#parts.size) return this.release(runId);
    for (const [key, own] of twice) {
      this.#parts.delete(key);
      this.#ports.partFreed(runId, own);
    }
    this.#ports.changed();
  }

  #wait(runId: string): void {
    const isFirst = !this.isWanted;
    this.#waiting.set(runId, this.#nowMs());
    if (isFirst) this.#ports.changed();
  }

  #firstWaiting(): string | undefined {
    for (const [runId, atMs] of this.#waiting) {
      if (this.#nowMs() - atMs <= this.#times.waiterMs) return runId;
      this.#waiting.delete(runId);
    }
    return undefined;
  }

  /**
   * The message that releases the lease is lost when NATS is down, so the store is asked whether the run still needs
   * the trainer. Without an answer the run keeps it.
   */
  #askIfActive(holder: Leaseholder): void {
    const now = this.#nowMs();
    if (this.#jobs > 0 || now - this.#askedAtMs < this.#times.askEveryMs) return;
    this.#askedAtMs = now;
    this.#ports.isActive(holder).then(
      (active) => {
        if (!active && this.#jobs === 0) this.release(holder.runId);
      },
      (error: unknown) => this.#ports.log(`${holder.runId} keeps the trainer: ${String(error)}`),
    );
  }
}
