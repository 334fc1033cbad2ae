/**
 * Recomputes results that were lost. A result object is never overwritten. When it is damaged, or a blob that it names
 * is missing or damaged, the job runs again as its next *generation*: the same input with a generation number, and so
 * with another job id.
 *
 * In deterministic mode the recomputed blobs have the same bytes and so the same names; nothing else changes. Otherwise
 * they differ, and the later stages read the new ones; no committed record names the lost ones.
 */
import { isDamage, isLostBlob } from '../../core/records/damage.ts';
import type { Digest } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import type { Stage } from '../../core/wire/jobs/index.ts';
import type { JobRequest, JobResult, WaitOptions } from '../../core/ports/jobs.ts';
import type { ActivityPorts } from '../ports/index.ts';

/** After this many losses of one result, the disk is probably failing, and the run pauses until a person resumes it. */
const maxTries = 3;

/** A blob, and the job that made it. */
export interface MadeBy {
  readonly fact: Digest;
  readonly request: JobRequest<Stage>;
  /** Id of `request` in the generation that made the blob. */
  readonly jobId: string;
}

export class Recompute {
  readonly #ports: Pick<ActivityPorts, 'dispatcher' | 'say' | 'jobIdOf'>;
  /** Current generation, by run and first job id. Kept in memory only: a new process finds the damage again. */
  readonly #generations = new Map<string, number>();
  /** Maps run and job id of a generation to whether its result existed when this process first asked for it. */
  readonly #found = new Map<string, boolean>();
  /** Failed generations since the run last resumed. A result that existed before this process asked does not count. */
  readonly #failed = new Map<string, number>();

  constructor(ports: Pick<ActivityPorts, 'dispatcher' | 'say' | 'jobIdOf'>) {
    this.#ports = ports;
  }

  /** Runs the job in its current generation; in the next one when the result object is damaged. */
  run<S extends Stage>(request: JobRequest<S>, options: WaitOptions): Promise<JobResult<S>> {
    return this.runBy(request, (current) => this.#ports.dispatcher.run(current, options));
  }

  /** Does what `run` does, for a job that `work` runs. */
  async runBy<S extends Stage>(
    request: JobRequest<S>,
    work: (current: JobRequest<S>) => Promise<JobResult<S>>,
  ): Promise<JobResult<S>> {
    for (;;) {
      const current = this.#current(request);
      const jobId = this.#ports.jobIdOf(current.stage, current.input);
      if (current !== request) await this.#lookFor(current, jobId);
      try {
        return await work(current);
      } catch (error) {
        const own = isDamage(error) && error.where === keys.result(request.runId, jobId);
        if (!own || !this.#next(request, jobId, error.message)) throw error;
      }
    }
  }

  /**
   * Takes a failure and the blobs that the failed work read. True when one of these blobs caused the failure and the
   * next `run` will recompute it.
   */
  lost(error: unknown, facts: readonly MadeBy[]): boolean {
    const cause = facts.find(({ fact, request }) => isLostBlob(error, request.runId, fact));
    return (
      cause !== undefined &&
      this.#next(cause.request, cause.jobId, error instanceof Error ? error.message : String(error))
    );
  }

  /** Marks this job's result as lost, so that the next `run` recomputes it. False after too many tries. */
  again(request: JobRequest<Stage>, jobId: string, because: string): boolean {
    return this.#next(request, jobId, because);
  }

  /** Resets the failure counts when the run resumes, because its user may have fixed the disk. Generations stay. */
  resetFailures(runId: string): void {
    for (const name of this.#failed.keys()) if (name.startsWith(`${runId} `)) this.#failed.delete(name);
  }

  #current<S extends Stage>(request: JobRequest<S>): JobRequest<S> {
    const generation = this.#generations.get(this.#name(request)) ?? 0;
    return generation === 0 ? request : { ...request, input: { ...request.input, generation }, isNew: false };
  }

  /** Two waiters may report the same loss: only a loss of the current generation starts the next one. */
  #next(request: JobRequest<Stage>, jobId: string, because: string): boolean {
    const name = this.#name(request);
    const generation = this.#generations.get(name) ?? 0;
    const current = this.#current(request);
    if (this.#ports.jobIdOf(current.stage, current.input) !== jobId) return true;
    const failed = (this.#failed.get(name) ?? 0) + (this.#found.get(`${request.runId} ${jobId}`) === true ? 0 : 1);
    if (failed >= maxTries) return false;
    this.#failed.set(name, failed);
    this.#generations.set(name, generation + 1);
    this.#ports.say(request.runId, 'warn', `${request.stage} is recomputed: ${because}`);
    return true;
  }

  async #lookFor({ runId, store }: JobRequest<Stage>, jobId: string): Promise<void> {
    const name = `${runId} ${jobId}`;
    if (this.#found.has(name)) return;
    const found = (await store.head(keys.result(runId, jobId))) !== undefined;
    // Another waiter may have looked, and recomputed the job, during the read.
    if (!this.#found.has(name)) this.#found.set(name, found);
  }

  #name(request: JobRequest<Stage>): string {
    return `${request.runId} ${this.#ports.jobIdOf(request.stage, request.input)}`;
  }
}
