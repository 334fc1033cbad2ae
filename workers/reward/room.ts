/**
 * Slots for scoring jobs. Scorers may be slow or hang until their time limit, so one run's jobs could hold all slots
 * while other runs wait. When all slots have been held for a while, one more job is admitted for each run that has none
 * here.
 */

export interface RewardRoomSize {
  /** Parallel jobs, of any runs. */
  readonly slots: number;
  /** Parallel jobs when there are more runs than slots: each run beyond `slots` has one. */
  readonly most: number;
  /** How long the same jobs must hold all slots before another run's job is admitted in addition. */
  readonly patienceMs: number;
}

const usualRewardRoom: RewardRoomSize = { slots: 2, most: 8, patienceMs: 1_000 };

export class RewardRoom {
  readonly #size: RewardRoomSize;
  readonly #now: () => number;
  /** Running jobs and pulls in progress. */
  #taken = 0;
  /** Run of each running job. */
  readonly #runs: string[] = [];
  /** Time at which a job last started or ended. */
  #changedAt = 0;
  #wake: () => void = () => {};

  constructor(size: RewardRoomSize = usualRewardRoom, now: () => number = () => performance.now()) {
    this.#size = size;
    this.#now = now;
  }

  get slots(): number {
    return this.#size.slots;
  }

  /** Resolves when one more job may be pulled, and reserves a place for it. One caller at a time. */
  async enter(): Promise<void> {
    while (!this.#mayEnter()) await this.#change();
    this.#taken += 1;
  }

  leave(): void {
    this.#taken -= 1;
    this.#wake();
  }

  /** Why a job of this run must wait; undefined when it may start. */
  refuse(runId: string): string | undefined {
    if (this.#runs.length < this.#size.slots || !this.#runs.includes(runId)) return undefined;
    const holders = [...new Set(this.#runs)].join(', ');
    return `waiting for a reward slot: all ${this.#size.slots} are busy with run ${holders}`;
  }

  /** Holds a slot while a job runs. */
  async hold<T>(runId: string, work: () => Promise<T>): Promise<T> {
    this.#runs.push(runId);
    this.#changed();
    try {
      return await work();
    } finally {
      this.#runs.splice(this.#runs.indexOf(runId), 1);
      this.#changed();
    }
  }

  #mayEnter(): boolean {
    const { slots, most } = this.#size;
    return this.#taken < slots || (this.#taken < most && this.#patienceLeftMs() <= 0);
  }

  #patienceLeftMs(): number {
    return this.#changedAt + this.#size.patienceMs - this.#now();
  }

  #changed(): void {
    this.#changedAt = this.#now();
    this.#wake();
  }

  /** Resolves when a place may be free. */
  async #change(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (this.#taken < this.#size.most) timer = setTimeout(resolve, Math.max(1, this.#patienceLeftMs()));
    });
    clearTimeout(timer);
  }
}
