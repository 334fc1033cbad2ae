/**
 * Drains a worker that was told to leave. The worker finishes the in-flight jobs that will be done within the grace
 * period and requeues the others at once. A requeued job costs no retry budget; another worker runs it.
 */
import { PreemptedError } from '../core/errors.ts';
import type { Stage } from '../core/wire/jobs/index.ts';
import type { Role } from '../core/roles.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import type { JobProgress } from '../infra/nats/jobs/puller.ts';

/** The part of the grace period that is kept for disconnecting. */
export const goodbyeMs = 1_000;
/** How often the worker checks whether the in-flight jobs will be done in time. */
const lookMs = 200;

/** A job from its claim to its end. */
export class InFlightJob {
  readonly role: Role;
  readonly stage: Stage;
  readonly runId: string;
  readonly jobId: string;
  readonly progress: JobProgress;
  readonly #cancelled = new AbortController();
  /** Rejects when the job is requeued or cancelled. */
  readonly requeued: Promise<never>;
  #reject: (error: Error) => void = () => {};
  #over = false;
  #beganAt: number | undefined;

  constructor(
    role: Role,
    { stage, runId, jobId }: Pick<JobMessage, 'stage' | 'runId' | 'jobId'>,
    progress: JobProgress,
  ) {
    this.role = role;
    this.stage = stage;
    this.runId = runId;
    this.jobId = jobId;
    this.progress = progress;
    this.requeued = new Promise((_, reject) => (this.#reject = reject));
    this.requeued.catch(() => undefined); // the caller that waits for the job gets the error
  }

  /** Aborted when nobody wants the result any more. */
  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** The job has started to compute. */
  begin(now: number): void {
    this.#beganAt = now;
  }

  /**
   * Estimated time left in ms: from the job's progress, else from how long such a job took before; undefined when
   * unknown.
   */
  remainingMs(now: number, usualMs: number | undefined): number | undefined {
    if (this.#beganAt === undefined) return Number.POSITIVE_INFINITY;
    const { done, total } = this.progress;
    const elapsed = now - this.#beganAt;
    if (done > 0 && total > 0) return (elapsed * Math.max(0, total - done)) / done;
    return usualMs === undefined ? undefined : Math.max(0, usualMs - elapsed);
  }

  requeue(why: string): void {
    this.#end(new PreemptedError('Leaving', `requeued: ${why}`));
  }

  /** Stops the job, because nobody wants its result. */
  cancel(why: string): void {
    this.#end(new PreemptedError('Cancelled', why));
    this.#cancelled.abort();
  }

  #end(error: PreemptedError): void {
    if (this.#over) return;
    this.#over = true;
    this.#reject(error);
  }
}

export interface DrainPorts {
  /** The jobs in flight now. */
  readonly inFlight: () => Iterable<InFlightJob>;
  /** Resolves when no job is in flight and none will start. */
  readonly ended: Promise<unknown>;
  readonly usualMs: (stage: Stage) => number | undefined;
  /** How long a trainer needs to write its state. */
  readonly saveMs: () => number | undefined;
  readonly now: () => number;
}

/**
 * Resolves when no job is in flight. A trainer's job also needs time for the checkpoint after it. Rollouts requeue
 * themselves.
 */
export async function drain(notice: Notice, until: number, ports: DrainPorts): Promise<void> {
  const part = (job: InFlightJob) => {
    const left = until - ports.now();
    const remaining = job.remainingMs(ports.now(), ports.usualMs(job.stage));
    const needed =
      remaining === undefined ? undefined : remaining + (job.role === 'trainer' ? (ports.saveMs() ?? 0) : 0);
    if (left <= 0) job.requeue(`${notice.reason}, and the time is up`);
    else if (remaining === Number.POSITIVE_INFINITY) job.requeue(`${notice.reason}, before it began`);
    else if (job.role !== 'rollout' && needed !== undefined && needed > left) {
      job.requeue(`${notice.reason}: it needs ${seconds(needed)} more, and there are ${seconds(left)}`);
    }
  };
  const look = () => [...ports.inFlight()].forEach(part);
  look();
  const timer = setInterval(look, lookMs);
  try {
    await Promise.race([ports.ended, after(until + goodbyeMs / 2 - ports.now())]);
  } finally {
    clearInterval(timer);
  }
}

/** Resolves with undefined when it takes longer. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, after(ms)]);
}

function after(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), Math.max(0, ms)).unref());
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
