/**
 * How a worker that is told to leave parts with what it has in hand, inside its grace: what will be done in time is
 * finished, all else is handed back at once. A job that is handed back costs no budget, and goes on elsewhere.
 */
import { PreemptedError } from '../core/errors.ts';
import type { Stage } from '../core/wire/jobs.ts';
import type { Role } from '../core/roles.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import type { JobProgress } from '../infra/nats/puller.ts';

/** Of the grace, for saying goodbye. */
export const goodbyeMs = 1_000;
/** How often it is asked whether what is in hand is still going to be done in time. */
const lookMs = 200;

/** A job from its claim to its end. */
export class InHand {
  readonly role: Role;
  readonly stage: Stage;
  readonly runId: string;
  readonly #progress: JobProgress;
  readonly #cancelled = new AbortController();
  /** Rejects when the job is handed back or cancelled. */
  readonly handedBack: Promise<never>;
  #reject: (error: Error) => void = () => {};
  #over = false;
  #beganAt: number | undefined;

  constructor(role: Role, { stage, runId }: Pick<JobMessage, 'stage' | 'runId'>, progress: JobProgress) {
    this.role = role;
    this.stage = stage;
    this.runId = runId;
    this.#progress = progress;
    this.handedBack = new Promise((_, reject) => (this.#reject = reject));
    this.handedBack.catch(() => undefined); // whoever does the job hears of it
  }

  /** Aborted when nobody wants the result any more. */
  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** It waits for nothing any more. */
  begin(now: number): void {
    this.#beganAt = now;
  }

  /** ms that it will still take, by its own progress, else by how long such a job took before. undefined: nobody knows. */
  remainingMs(now: number, usualMs: number | undefined): number | undefined {
    if (this.#beganAt === undefined) return Number.POSITIVE_INFINITY;
    const { done, total } = this.#progress;
    const elapsed = now - this.#beganAt;
    if (done > 0 && total > 0) return (elapsed * Math.max(0, total - done)) / done;
    return usualMs === undefined ? undefined : Math.max(0, usualMs - elapsed);
  }

  handBack(why: string): void {
    this.#end(new PreemptedError('Leaving', `handed back: ${why}`));
  }

  /** The job's run has ended: the work stops where it is. */
  cancel(): void {
    this.#end(new PreemptedError('Cancelled', `${this.runId} has ended`));
    this.#cancelled.abort();
  }

  #end(error: PreemptedError): void {
    if (this.#over) return;
    this.#over = true;
    this.#reject(error);
  }
}

export interface DrainPorts {
  /** What is in hand now. */
  readonly hands: () => Iterable<InHand>;
  /** Resolves when nothing is in hand, and nothing will be. */
  readonly ended: Promise<unknown>;
  readonly usualMs: (stage: Stage) => number | undefined;
  /** How long a trainer needs to write its state. */
  readonly saveMs: () => number | undefined;
  readonly now: () => number;
}

/** Resolves when nothing is in hand. A job of a trainer counts only with the checkpoint after it. Rollouts hand themselves back. */
export async function drain(notice: Notice, until: number, ports: DrainPorts): Promise<void> {
  const part = (hand: InHand) => {
    const left = until - ports.now();
    const remaining = hand.remainingMs(ports.now(), ports.usualMs(hand.stage));
    const needed =
      remaining === undefined ? undefined : remaining + (hand.role === 'trainer' ? (ports.saveMs() ?? 0) : 0);
    if (left <= 0) hand.handBack(`${notice.reason}, and the time is up`);
    else if (remaining === Number.POSITIVE_INFINITY) hand.handBack(`${notice.reason}, before it began`);
    else if (hand.role !== 'rollout' && needed !== undefined && needed > left) {
      hand.handBack(`${notice.reason}: it needs ${seconds(needed)} more, and there are ${seconds(left)}`);
    }
  };
  const look = () => [...ports.hands()].forEach(part);
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
