/**
 * One job, waited for. Pure of I/O: it is told what happened and says what to do, so that it is tested without servers.
 * Budgets are per failure class: preemption costs nothing, unknown errors and deaths are counted.
 */
import { PauseError, TerminalError } from '../../core/errors.ts';
import type { PetrelError } from '../../core/errors.ts';
import type { ClaimReply, ClaimRequest, JobEvent, Timing } from '../../core/wire/messages.ts';
import { wireVersion } from '../../core/wire/messages.ts';

/** Unknown errors of one job after which the run pauses, unless they are all of one worker and others could do it. */
const maxUnknownFailures = 3;
/** A worker that failed this job leaves it to others for this long, times its failures. */
const leaveToOthersMs = 3_000;
/** A job that crashes this many workers while it runs alone is a poison job. */
const maxDeathsAlone = 2;
/**
 * What a death counts for when the worker was killed from outside, or vanished: that is what machines do that may be
 * taken away, and says little about the job. Something does, since memory that runs out ends in a kill too.
 */
const killCounts = 0.25;
/** How a process ends that did not crash, as its supervisor tells it. */
const killed: ReadonlySet<string | undefined> = new Set([undefined, 'SIGKILL', 'SIGTERM', 'exit code 0', 'ended']);

/** What the waiter knows of its job and its workers. */
export interface JobWaitOptions {
  /** It ended a worker as a part of a larger job: it runs alone from the start. */
  readonly quarantined?: boolean;
  /** It can be cut into parts, so the first death alone says enough: its parts are tried one by one. */
  readonly divisible?: boolean;
  /** Is there a healthy worker, other than these, that could do it? */
  readonly others?: (than: ReadonlySet<string>) => boolean;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
  readonly note: string;
  readonly worker: string;
}

interface Holder {
  readonly worker: string;
  readonly incarnation: string;
  readonly alone: boolean;
  lastSeen: number;
  /** How its process ended, if its successor could tell. */
  ended?: string | undefined;
}

/** What the waiter must do after an event. */
export type Verdict =
  | { readonly type: 'wait' }
  | { readonly type: 'read-result' }
  | { readonly type: 'publish'; readonly delayMs: number }
  | { readonly type: 'give-up'; readonly error: PetrelError };

const wait: Verdict = { type: 'wait' };

export class JobWait {
  readonly #jobId: string;
  readonly #timing: Timing;
  #holder: Holder | undefined;
  readonly #options: JobWaitOptions;
  /** Workers in whose hands it failed for unknown reasons. */
  readonly #failedAt = new Map<string, { times: number; last: number }>();
  #unknownFailures = 0;
  #retries = 0;
  #deaths = 0;
  #deathsAlone = 0;
  #poison: PauseError | undefined;
  progress: Progress | undefined;
  queuedBecause: string | undefined;

  constructor(jobId: string, timing: Timing, options: JobWaitOptions = {}) {
    this.#jobId = jobId;
    this.#timing = timing;
    this.#options = options;
    if (options.quarantined === true) this.#deaths = 1;
  }

  get holder(): string | undefined {
    return this.#holder?.worker;
  }

  /** Has a worker shown life within the ack wait? */
  heldAt(now: number): boolean {
    return this.#holder !== undefined && now - this.#holder.lastSeen < this.#timing.ackWaitMs;
  }

  get poison(): PauseError | undefined {
    return this.#poison;
  }

  /** A process of this name is there anew: true when it held the job before, which is nobody's now. */
  replaced(worker: string, incarnation: string, ended?: string): boolean {
    if (this.#holder === undefined || this.#holder.worker !== worker || this.#holder.incarnation === incarnation)
      return false;
    this.#holder.lastSeen = Number.NEGATIVE_INFINITY;
    this.#holder.ended = ended;
    return true;
  }

  /** The connection was lost for a while: a holder that could not be heard has not died for that. */
  reconnected(now: number): void {
    if (this.#holder !== undefined && this.#holder.lastSeen !== Number.NEGATIVE_INFINITY) this.#holder.lastSeen = now;
  }

  /** A worker asks whether it may start. */
  claim(request: ClaimRequest, now: number): ClaimReply {
    const reply = (answer: ClaimReply['answer'], alone = false): ClaimReply => ({
      v: wireVersion,
      answer,
      alone,
      ...(this.#holder === undefined ? {} : { holder: this.#holder.worker }),
    });
    if (this.#poison !== undefined) return reply('drop');
    const same = this.#holder?.incarnation === request.incarnation;
    this.replaced(request.worker, request.incarnation, request.predecessorEnded);
    if (this.heldAt(now) && !same) return reply('held');
    if (this.#leavesToOthers(request.worker, now)) return reply('held');
    if (this.#holder !== undefined && !same) this.#countDeath(this.#holder);
    if (this.#poison !== undefined) return reply('drop');
    const alone = this.#deaths > 0;
    this.#holder = { worker: request.worker, incarnation: request.incarnation, alone, lastSeen: now };
    this.queuedBecause = undefined;
    return reply('go', alone);
  }

  event(event: JobEvent, now: number): Verdict {
    switch (event.type) {
      case 'progress':
        if (this.#holder?.worker === event.worker) this.#holder.lastSeen = now;
        this.progress = { done: event.done, total: event.total, note: event.note, worker: event.worker };
        return wait;
      case 'done':
        return { type: 'read-result' };
      case 'queued':
        // One that will not do it says nothing about another that does.
        if (this.#holder?.worker === event.worker) this.#holder = undefined;
        if (this.#holder === undefined) this.queuedBecause = event.because;
        return wait;
      case 'failed':
        // It lost the job to another, which is at it: that one's outcome counts.
        if (this.#holder?.worker !== event.worker && this.heldAt(now)) return wait;
        this.#holder = undefined;
        return this.#failed(event, now);
    }
  }

  #leavesToOthers(worker: string, now: number): boolean {
    const failed = this.#failedAt.get(worker);
    return failed !== undefined && now - failed.last < leaveToOthersMs * failed.times && this.#othersThan(worker);
  }

  #othersThan(...workers: readonly string[]): boolean {
    return this.#options.others?.(new Set(workers)) ?? false;
  }

  #countDeath(holder: Holder): void {
    this.#deaths += 1;
    if (holder.alone) this.#deathsAlone += killed.has(holder.ended) ? killCounts : 1;
    if (this.#deathsAlone < (this.#options.divisible === true ? 1 : maxDeathsAlone)) return;
    this.#poison = new PauseError(
      'JobConvicted',
      `${this.#jobId} ended workers again and again while it ran alone; the last one by ${holder.ended ?? 'vanishing'}`,
      {
        hint: 'See the worker logs (petrel logs); petrel resume tries once more',
        where: holder.worker,
      },
    );
  }

  #failed(event: Extract<JobEvent, { type: 'failed' }>, now: number): Verdict {
    const { code, message } = event.error;
    const detail = {
      ...(event.error.hint === undefined ? {} : { hint: event.error.hint }),
      where: event.error.where ?? event.worker,
    };
    switch (event.kind) {
      case 'terminal':
        return { type: 'give-up', error: new TerminalError(code, message, detail) };
      case 'pause':
        return { type: 'give-up', error: new PauseError(code, message, detail) };
      case 'preempted':
        return { type: 'publish', delayMs: 0 };
      case 'unfit':
        // This says nothing about the job. The worker itself refuses such jobs from now on.
        this.queuedBecause = `${event.worker} cannot do it: ${message}`;
        return { type: 'publish', delayMs: 0 };
      case 'retryable':
        this.#retries += 1;
        this.queuedBecause = message;
        return { type: 'publish', delayMs: Math.min(5_000, 100 * 2 ** Math.min(this.#retries, 6)) };
      case 'unknown':
        this.#unknownFailures += 1;
        this.#failedAt.set(event.worker, { times: (this.#failedAt.get(event.worker)?.times ?? 0) + 1, last: now });
        if (this.#unknownFailures < maxUnknownFailures) return { type: 'publish', delayMs: 200 };
        // One worker that fails everything says nothing about the job.
        if (this.#failedAt.size === 1 && this.#othersThan(event.worker)) return { type: 'publish', delayMs: 200 };
        return {
          type: 'give-up',
          error: new PauseError(
            'JobFailed',
            `${this.#jobId} failed ${this.#unknownFailures} times; last: ${message}`,
            detail,
          ),
        };
    }
  }
}
