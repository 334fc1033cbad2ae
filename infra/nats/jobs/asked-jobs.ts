/** Which jobs this process has been asked for, at the newest position of each run. */
import type { Job } from './job.ts';

/** More runs than a machine drives at once. */
const keptRuns = 256;

export class AskedJobs {
  /** Maps a run to the jobs of its newest position; the oldest is evicted first. */
  readonly #asked = new Map<string, { readonly place: string; readonly jobs: Set<string> }>();

  /** True when it is asked for the first time. */
  note({ jobId, request: { runId, at } }: Job): boolean {
    const place = `${at.term}/${at.iteration}`;
    const before = this.#asked.get(runId);
    const known = before?.place === place ? before : { place, jobs: new Set<string>() };
    this.#asked.delete(runId);
    this.#asked.set(runId, known);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > keptRuns && oldest !== undefined) this.#asked.delete(oldest);
    const isFirst = !known.jobs.has(jobId);
    known.jobs.add(jobId);
    return isFirst;
  }
}
