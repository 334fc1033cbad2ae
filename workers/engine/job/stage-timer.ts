/** Seconds of the parts of one job, as operational figures of it. */
import type { JobContext } from './context.ts';

export class StageTimer {
  readonly #count: JobContext['count'];
  readonly #startedAt = performance.now();
  #countedMs = 0;

  constructor({ count }: Pick<JobContext, 'count'>) {
    this.#count = count;
  }

  /** Counts how long `work` takes under `name`. */
  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const result = await work();
    this.#add(name, performance.now() - startedAt);
    return result;
  }

  /** Counts the time since the start that no part has counted. */
  end(name: string): void {
    this.#count(name, (performance.now() - this.#startedAt - this.#countedMs) / 1000);
  }

  #add(name: string, ms: number): void {
    this.#countedMs += ms;
    this.#count(name, ms / 1000);
  }
}
