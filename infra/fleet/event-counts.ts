/**
 * How many events of workers there were since the previous committed iteration of each run. A control process counts
 * while it runs.
 */
import type { WorkerEventType } from '../../core/wire/worker-event.ts';

type Counts = Readonly<Record<WorkerEventType, number>>;

const none: Counts = { joined: 0, notice: 0, lost: 0, replaced: 0 };

export interface CountedEvents {
  /** Counts by name: core/metrics.ts. */
  readonly metrics: Readonly<Record<string, number>>;
  /** The iteration that has these metrics is committed: the next one counts from here. */
  readonly committed: () => void;
}

export class EventCounts {
  readonly #workers: () => number;
  #all = none;
  /** Maps a run to all counts at its last commit. */
  readonly #before = new Map<string, Counts>();

  /** `workers`: how many there are at present. */
  constructor(workers: () => number) {
    this.#workers = workers;
  }

  add(type: WorkerEventType): void {
    this.#all = { ...this.#all, [type]: this.#all[type] + 1 };
  }

  /**
   * A run begins or goes on; one that is counted already goes on counting. Without this call it counts from the start
   * of this process.
   */
  begin(runId: string): void {
    if (!this.#before.has(runId)) this.#before.set(runId, this.#all);
  }

  /** Counts for the iteration that is about to be committed. */
  count(runId: string): CountedEvents {
    const [before, now] = [this.#before.get(runId) ?? none, this.#all];
    return {
      metrics: {
        'fleet/joined': now.joined - before.joined,
        'fleet/notices': now.notice - before.notice,
        'fleet/lost': now.lost - before.lost,
        'fleet/replaced': now.replaced - before.replaced,
        'fleet/workers': this.#workers(),
      },
      committed: () => void this.#before.set(runId, now),
    };
  }

  /** The run has ended. */
  end(runId: string): void {
    this.#before.delete(runId);
  }
}
