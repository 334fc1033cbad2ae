/**
 * Jobs whose results were lost are done again. A result object is a decision and cannot be overwritten; when it is damaged,
 * or what it names is missing or damaged, the job goes on as its next *generation*: the same input under an id of its own.
 *
 * In deterministic mode that makes the same bytes, so the lost fact is back under its name and everything after it is as it
 * was. Otherwise it makes others, and what follows is made from those: nothing that is committed names the lost ones.
 */
import { isDamage, isLostBlob } from '../core/damage.ts';
import type { Digest } from '../core/ids.ts';
import { keys } from '../core/records/keys.ts';
import type { Stage } from '../core/wire/jobs.ts';
import type { JobRequest, JobResult, WaitOptions } from '../infra/nats/dispatcher.ts';
import type { ActivityPorts } from './ports.ts';

/** A fact that is lost more often says that the disk is dying: then a person must act, and says so by `resume`. */
const maxTries = 3;

/** A fact with the job that made it. */
export interface MadeBy {
  readonly fact: Digest;
  readonly request: JobRequest<Stage>;
  /** Of the job that made it. */
  readonly jobId: string;
}

export class Remakes {
  readonly #ports: Pick<ActivityPorts, 'dispatcher' | 'say' | 'jobIdOf'>;
  /** Generation that counts, by run and first job id. Forgotten with the process: the damage is met again then. */
  readonly #generations = new Map<string, number>();
  /** Generations, by run and job id: was the result there when this process first asked for it? */
  readonly #found = new Map<string, boolean>();
  /** Generations that failed since the run last began to work. What was damaged before this process asked says nothing of the disk of today. */
  readonly #failed = new Map<string, number>();

  constructor(ports: Pick<ActivityPorts, 'dispatcher' | 'say' | 'jobIdOf'>) {
    this.#ports = ports;
  }

  /** The job in the generation that counts. A damaged result object makes way for the next one. */
  run<S extends Stage>(request: JobRequest<S>, options: WaitOptions): Promise<JobResult<S>> {
    return this.runBy(request, (current) => this.#ports.dispatcher.run(current, options));
  }

  /** As `run`, for a job that is done by `work`. */
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
   * Told of a failure and of the facts that the failed work read. True when one of them is the cause and its job is to be
   * done again, by the next `run`.
   */
  lost(error: unknown, facts: readonly MadeBy[]): boolean {
    const cause = facts.find(({ fact, request }) => isLostBlob(error, request.runId, fact));
    return (
      cause !== undefined &&
      this.#next(cause.request, cause.jobId, error instanceof Error ? error.message : String(error))
    );
  }

  /** What this job made is of no use: the next `run` makes it again. False when that was tried too often. */
  again(request: JobRequest<Stage>, jobId: string, because: string): boolean {
    return this.#next(request, jobId, because);
  }

  /** The run goes on: its owner may have mended the disk. Generations that are there stay as they are. */
  goesOn(runId: string): void {
    for (const name of this.#failed.keys()) if (name.startsWith(`${runId} `)) this.#failed.delete(name);
  }

  #current<S extends Stage>(request: JobRequest<S>): JobRequest<S> {
    const generation = this.#generations.get(this.#name(request)) ?? 0;
    return generation === 0 ? request : { ...request, input: { ...request.input, generation } };
  }

  /** Two who wait for one job meet its loss twice: only the one that counts makes way. */
  #next(request: JobRequest<Stage>, jobId: string, because: string): boolean {
    const name = this.#name(request);
    const generation = this.#generations.get(name) ?? 0;
    const current = this.#current(request);
    if (this.#ports.jobIdOf(current.stage, current.input) !== jobId) return true;
    const failed = (this.#failed.get(name) ?? 0) + (this.#found.get(`${request.runId} ${jobId}`) === true ? 0 : 1);
    if (failed >= maxTries) return false;
    this.#failed.set(name, failed);
    this.#generations.set(name, generation + 1);
    this.#ports.say(request.runId, 'warn', `${request.stage} is done again: ${because}`);
    return true;
  }

  async #lookFor({ runId, store }: JobRequest<Stage>, jobId: string): Promise<void> {
    const name = `${runId} ${jobId}`;
    if (this.#found.has(name)) return;
    const found = (await store.head(keys.result(runId, jobId))) !== undefined;
    // Another who waits for it may have asked, and had it made, meanwhile.
    if (!this.#found.has(name)) this.#found.set(name, found);
  }

  #name(request: JobRequest<Stage>): string {
    return `${request.runId} ${this.#ports.jobIdOf(request.stage, request.input)}`;
  }
}
