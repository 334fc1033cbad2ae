/**
 * The rules for waiting for one job: who may run it, when it is published again, and when the wait gives up. There is
 * no I/O here: the session (wait-session.ts) passes every claim and event in and carries out the returned verdict.
 *
 * ```
 *              claim() answers "go"
 *   UNHELD ─────────────────────────────▶ HELD by one process of a worker
 *     ▲                                     │ claim() by another worker: "held"
 *     │ event "failed" or "queued",         │ event "progress": renews the ack wait
 *     │ another process took its name,      │
 *     │ its connection closed,              │
 *     └─ or silent for ackWaitMs ───────────┤
 *                                           └─ event "done" ──▶ verdict: read the result
 *
 *   "failed", by kind        verdict
 *     terminal, pause        give up with that error
 *     preempted, unfit       publish at once; costs nothing
 *     retryable              publish after a delay that doubles up to 5 s
 *     unknown                publish; from the third time on pause with JobFailed, unless only one worker fails it
 *
 *   A holder that is lost without an event has died. The next claim counts the death, and from then on the job runs
 *   alone on its worker (quarantined). Two crashes while it runs alone make it POISON; a kill counts as a quarter of a
 *   crash. The wait of a poison job fails with the pause JobConvicted, and every further claim is answered "drop".
 * ```
 */
import { PauseError, TerminalError } from '../../../core/errors.ts';
import type { PetrelError } from '../../../core/errors.ts';
import type { Progress } from '../../../core/ports/jobs.ts';
import type { ClaimRequest, JobEvent, Timing } from '../../../core/wire/messages.ts';

/**
 * After this many unknown errors, the run pauses, unless one worker had all of them and other workers could run the
 * job.
 */
const maxUnknownFailures = 3;
/**
 * A worker that failed the job may not claim it for this time, multiplied by its failures, while others could run it.
 */
const leaveToOthersMs = 3_000;
/** A job that crashes this many workers while it runs alone is a poison job. */
const maxDeathsAlone = 2;
/**
 * Weight of a death when the worker was killed from outside or vanished, against 1 for a crash. A preemptible machine
 * does that, and it says little about the job. It counts a little, because the kernel also kills a process that runs
 * out of memory.
 */
const killCounts = 0.25;
/** Exit descriptions of the supervisor that are not crashes. */
const killed: ReadonlySet<string | undefined> = new Set([undefined, 'SIGKILL', 'SIGTERM', 'exit code 0', 'ended']);

/** What the rules need to know about the job and the workers. */
export interface JobWaitOptions {
  /** It is a part of a larger job that crashed a worker: it runs alone from the start. */
  readonly quarantined?: boolean;
  /** The caller can split it. Then one crash while it runs alone is enough to make it a poison job. */
  readonly divisible?: boolean;
  /** Is there a healthy worker, other than these, that could run it? */
  readonly others?: (than: ReadonlySet<string>) => boolean;
}

interface Holder {
  readonly worker: string;
  readonly incarnation: string;
  readonly alone: boolean;
  lastSeen: number;
  /** A silence for so long ends its hold. */
  readonly ackWaitMs: number;
  /** How the process ended, if the process that replaced it could tell. */
  ended?: string | undefined;
}

/** A claim with the name of the worker that sent it. */
export type Claim = Pick<ClaimRequest, 'incarnation' | 'predecessorEnded'> & {
  readonly worker: string;
  /** Default: that of the timing. A worker that is far away may be silent for longer. */
  readonly ackWaitMs?: number;
};

/** What a worker that asked is told; the message is `ClaimReply`. */
export interface ClaimAnswer {
  readonly answer: 'go' | 'drop' | 'held';
  /** A worker died while it had this job, so the job runs alone. */
  readonly alone: boolean;
}

/** What the session must do after an event. */
export type Verdict =
  | { readonly type: 'wait' }
  | { readonly type: 'read-result' }
  | { readonly type: 'publish'; readonly delayMs: number }
  | { readonly type: 'give-up'; readonly error: PetrelError };

const wait: Verdict = { type: 'wait' };

/** The state of one wait. */
export class JobWait {
  readonly #jobId: string;
  readonly #timing: Timing;
  #holder: Holder | undefined;
  readonly #options: JobWaitOptions;
  /** Unknown failures by worker: how many, and when the last one happened. */
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

  /** Is there a holder that has shown a sign of life within the ack wait? */
  heldAt(now: number): boolean {
    return this.#holder !== undefined && now - this.#holder.lastSeen < this.#holder.ackWaitMs;
  }

  /** Does this process of a worker hold the job? */
  isHeldBy(worker: string, incarnation: string): boolean {
    return this.#holder?.worker === worker && this.#holder.incarnation === incarnation;
  }

  get poison(): PauseError | undefined {
    return this.#poison;
  }

  /** A new process has taken this worker's name. True when the old process held the job, which now has no holder. */
  replaced(worker: string, incarnation: string, ended?: string): boolean {
    if (this.#holder === undefined || this.#holder.worker !== worker || this.#holder.incarnation === incarnation)
      return false;
    this.#holder.lastSeen = Number.NEGATIVE_INFINITY;
    this.#holder.ended = ended;
    return true;
  }

  /** This process of a worker is gone. True when it held the job, which now has no holder. */
  lost(worker: string, incarnation: string): boolean {
    if (this.#holder?.worker !== worker || this.#holder.incarnation !== incarnation) return false;
    this.#holder.lastSeen = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** The connection is back after an outage: the holder gets a full ack wait, since its messages could not arrive. */
  reconnected(now: number): void {
    if (this.#holder !== undefined && this.#holder.lastSeen !== Number.NEGATIVE_INFINITY) this.#holder.lastSeen = now;
  }

  /** Answers a worker that asks whether it may start the job. */
  claim(request: Claim, now: number): ClaimAnswer {
    const reply = (answer: ClaimAnswer['answer'], alone = false): ClaimAnswer => ({ answer, alone });
    if (this.#poison !== undefined) return reply('drop');
    const same = this.#holder?.worker === request.worker && this.#holder.incarnation === request.incarnation;
    this.replaced(request.worker, request.incarnation, request.predecessorEnded);
    if (this.heldAt(now) && !same) return reply('held');
    if (this.#leavesToOthers(request.worker, now)) return reply('held');
    if (this.#holder !== undefined && !same) this.#countDeath(this.#holder);
    if (this.#poison !== undefined) return reply('drop');
    const alone = this.#deaths > 0;
    const { worker, incarnation, ackWaitMs = this.#timing.ackWaitMs } = request;
    this.#holder = { worker, incarnation, alone, lastSeen: now, ackWaitMs };
    this.queuedBecause = undefined;
    return reply('go', alone);
  }

  /** `worker`: who sent it. */
  event(event: JobEvent, worker: string, now: number): Verdict {
    switch (event.type) {
      case 'progress':
        if (this.#holder?.worker === worker) this.#holder.lastSeen = now;
        else if (this.#holder !== undefined) return wait;
        this.progress = { done: event.done, total: event.total, note: event.note, worker };
        return wait;
      case 'received':
        return wait;
      case 'done':
        return { type: 'read-result' };
      case 'queued':
        // A refusal by one worker does not end the hold of another.
        if (this.#holder?.worker === worker) this.#holder = undefined;
        if (this.#holder === undefined) this.queuedBecause = event.because;
        return wait;
      case 'failed':
        // This worker lost the job to another one, which runs it now: only the holder's outcome counts.
        if (this.#holder?.worker !== worker && this.heldAt(now)) return wait;
        this.#holder = undefined;
        return this.#failed(event, worker, now);
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
      `${this.#jobId} crashed workers repeatedly while it ran alone; the last one ended by ${holder.ended ?? 'vanishing'}`,
      {
        hint: 'read the worker logs (petrel logs), then petrel resume tries the job again',
        where: holder.worker,
      },
    );
  }

  #failed(event: Extract<JobEvent, { type: 'failed' }>, worker: string, now: number): Verdict {
    const { code, message } = event.error;
    const detail = {
      ...(event.error.hint === undefined ? {} : { hint: event.error.hint }),
      where: event.error.where ?? worker,
    };
    switch (event.kind) {
      case 'terminal':
        return { type: 'give-up', error: new TerminalError(code, message, detail) };
      case 'pause':
        return { type: 'give-up', error: new PauseError(code, message, detail) };
      case 'preempted':
        return { type: 'publish', delayMs: 0 };
      case 'unfit':
        // This says nothing about the job. The worker refuses such jobs from now on.
        this.queuedBecause = `${worker} cannot run it: ${message}`;
        return { type: 'publish', delayMs: 0 };
      case 'retryable':
        this.#retries += 1;
        this.queuedBecause = message;
        return { type: 'publish', delayMs: Math.min(5_000, 100 * 2 ** Math.min(this.#retries, 6)) };
      case 'unknown':
        this.#unknownFailures += 1;
        this.#failedAt.set(worker, { times: (this.#failedAt.get(worker)?.times ?? 0) + 1, last: now });
        if (this.#unknownFailures < maxUnknownFailures) return { type: 'publish', delayMs: 200 };
        // When one worker fails everything, the fault is probably the worker's.
        if (this.#failedAt.size === 1 && this.#othersThan(worker)) return { type: 'publish', delayMs: 200 };
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
