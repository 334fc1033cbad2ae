/** The results of jobs: objects in the store, each with the proof that its writer had the claim. */
import type { Store } from '../../../core/ports/store.ts';
import { PetrelError } from '../../../core/errors.ts';
import { keys } from '../../../core/records/keys.ts';
import { formatOfResult, resultRecord } from '../../../core/records/schema.ts';
import type { ResultRecord, Writer } from '../../../core/records/schema.ts';
import type { Stage, StageTypes } from '../../../core/wire/jobs/index.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { claimKeyOf } from '../../../log/objects/claim-key.ts';
import { decide, readRecord, storedRecord } from '../../../log/objects/records.ts';
import { claimSecret, proven, requireProof, weightsSecret } from '../../../log/objects/result-proof.ts';
import type { Job } from './job.ts';
import type { JobResult } from '../../../core/ports/jobs.ts';

/** The results of all stores. */
export class Results {
  readonly #process: string;
  /** Keys of claims, by place of the store. */
  readonly #claimKeys = new Map<string, Promise<string>>();

  /** `process`: name of this control process in records. */
  constructor(process: string) {
    this.#process = process;
  }

  async of<S extends Stage>(job: Job<S>): Promise<ResultOfJob<S>> {
    return new ResultOfJob(job, await this.#claimKey(job.request.store));
  }

  #claimKey(store: Store): Promise<string> {
    const known = this.#claimKeys.get(store.place) ?? claimKeyOf(store, this.#process);
    this.#claimKeys.set(store.place, known);
    known.catch(() => this.#claimKeys.delete(store.place));
    return known;
  }
}

/** The result of one job, and the secrets with which it is written. */
export class ResultOfJob<S extends Stage = Stage> {
  readonly #job: Job<S>;
  readonly #key: string;
  readonly #where: string;

  /** `key`: the key of the store's claims. */
  constructor(job: Job<S>, key: string) {
    this.#job = job;
    this.#key = key;
    this.#where = keys.result(job.request.runId, job.jobId);
  }

  /**
   * The result; undefined while there is none. Throws PauseError `DamagedRecord` for a result that no worker wrote
   * which had claimed the job.
   */
  async read(): Promise<JobResult<S> | undefined> {
    const found = await readRecord(this.#job.request.store, this.#where, resultRecord);
    return found && this.#trusted(found.record);
  }

  /**
   * The result whose text a worker says that it has created. Undefined when it cannot prove that it had claimed the
   * job: then only the store tells.
   */
  told(text: string): JobResult<S> | undefined {
    try {
      return this.#trusted(storedRecord(this.#where, new TextEncoder().encode(text), resultRecord).record);
    } catch (error) {
      if (error instanceof PetrelError) return undefined;
      throw error;
    }
  }

  /** Creates the result without a worker, for a job that ran in parts. An existing result object wins. */
  async settle(
    output: StageTypes[S]['output'],
    timings: ResultRecord['timings'],
    writer: Writer,
  ): Promise<JobResult<S>> {
    const { request, jobId } = this.#job;
    const record: ResultRecord = {
      format: formatOfResult(request.stage, output),
      jobId,
      stage: request.stage,
      output: { ...output },
      timings,
      writer,
    };
    const own = proven(record, writer.process, this.#secretOf(writer.process));
    const { record: decided } = await decide(request.store, this.#where, resultRecord, own, () => true);
    return this.#trusted(decided);
  }

  /** The secret of this process's claim of the job. */
  secretOf(claimant: WorkerIdentity): string {
    return this.#secretOf(identityText(claimant));
  }

  /** The secret with which the workers of the run get weights from each other. */
  get weightsSecret(): string {
    return weightsSecret(this.#key, this.#job.request.runId);
  }

  #secretOf(claimant: string): string {
    return claimSecret(this.#key, this.#job.request.runId, this.#job.jobId, claimant);
  }

  #trusted(record: ResultRecord): JobResult<S> {
    const { request, jobId } = this.#job;
    requireProof(this.#key, request.runId, jobId, record);
    const { output, timings, writer } = record;
    return {
      jobId,
      output: output as unknown as StageTypes[S]['output'],
      timings,
      endedAt: writer.at,
      by: writer.process,
    };
  }
}
