/** Following a run: the store tells what is committed, notes of the control process tell what is being done. */
import type { NatsConnection } from '@nats-io/nats-core';
import { endedStates } from '../../core/run-states.ts';
import type { RunState } from '../../core/run-states.ts';
import { totalIterations } from '../../core/recipe/index.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import { liveNote, liveSubject } from '../../core/wire/messages.ts';
import type { LiveMessage } from '../../core/wire/messages.ts';
import { readMessage } from '../../infra/nats/incoming.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { Head, RunLog } from '../../infra/store/run-log.ts';
import type { ApiContext } from '../context.ts';

const refreshMs = 200;
/** The time left is judged by so many iterations, the last ones. */
const iterationsForTimeLeft = 9;

/** What is known of a run at a moment. */
export interface RunProgress {
  readonly runId: string;
  readonly state: RunState;
  /** Committed iterations. */
  readonly iteration: number;
  /** Of the whole run. */
  readonly iterations: number;
  /** What it is doing now: `rollout 37 %`, `update waits: no worker with role trainer`. */
  readonly activity?: string;
  /** Mean score of the newest iteration. */
  readonly reward?: number;
  /** The number of the newest validation, and what it is. */
  readonly accuracy?: number;
  readonly validationMeasure?: ValidationMeasure;
  readonly loss?: number;
  /** Response tokens of the newest iteration by its wall time: the metric perf/response_throughput. */
  readonly tokensPerSecond?: number;
  /** Since the following began. */
  readonly elapsedS: number;
  readonly remainingS?: number;
}

export interface FollowOptions {
  /** Ends the following; the run goes on. */
  readonly signal: AbortSignal;
  /** Called whenever something may have changed, five times a second at least. */
  readonly onProgress: (progress: RunProgress) => void;
  /** Called at each change of state, with the reason when the run paused or failed. */
  readonly onState?: (state: RunState, reason: string) => void;
}

/** Follows a run until it ends or the signal comes. Resolves with the last state that it saw. */
export async function followRun(
  log: RunLog,
  { home }: Pick<ApiContext, 'home'>,
  options: FollowOptions,
): Promise<RunState> {
  const { inputs, recipe } = await log.revision();
  const view = new RunView(log, totalIterations(parseRecipe(recipe), inputs.trainRows), options);
  const nc = await connect(home);
  nc?.subscribe(liveSubject(log.runId), {
    callback: (error, message) => {
      const note = error === null ? readMessage(message, liveNote) : undefined;
      if (note !== undefined) view.note(note);
    },
  });
  try {
    for (;;) {
      const state = await view.refresh();
      if (options.signal.aborted || endedStates.has(state)) return state;
      await nextLook(options.signal);
    }
  } finally {
    await nc?.close();
  }
}

/** Without a stack there are no notes; the store tells the rest. */
async function connect(home: string): Promise<NatsConnection | undefined> {
  const stack = readStack(home);
  if (stack === undefined) return undefined;
  const { connectNats } = await import('../../infra/nats/connection.ts');
  return connectNats(stack, 'follow');
}

function nextLook(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, refreshMs);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
  });
}

/** What is known so far. */
class RunView {
  readonly #log: RunLog;
  readonly #iterations: number;
  readonly #options: FollowOptions;
  readonly #startedAt = performance.now();
  readonly #seconds: number[] = [];
  #position = 0;
  #lastAt: number | undefined;
  #activity: string | undefined;
  #reward: number | undefined;
  #loss: number | undefined;
  #validation: Pick<RunProgress, 'accuracy' | 'validationMeasure'> = {};
  #tokensPerSecond: number | undefined;
  #state: RunState = 'queued';
  #reason: string | undefined;

  constructor(log: RunLog, iterations: number, options: FollowOptions) {
    this.#log = log;
    this.#iterations = iterations;
    this.#options = options;
  }

  note({ stage, done, total, queued }: LiveMessage): void {
    const share = total > 0 ? ` ${Math.min(100, Math.round((100 * done) / total))} %` : '';
    this.#activity = queued === undefined ? `${stage}${share}` : `${stage} waits: ${queued}`;
    this.#show();
  }

  async refresh(): Promise<RunState> {
    const status = await this.#log.status();
    this.#changeState(status?.state ?? 'queued', status?.reason?.message ?? '');
    const head = await this.#log.head();
    if (head !== undefined) await this.#follow(head);
    this.#show();
    return this.#state;
  }

  /** Takes in what was committed since the last look; of a long run that is followed from now on, its last iterations. */
  async #follow(head: Head): Promise<void> {
    const seen = Math.max(this.#position, await this.#log.first(), head.position - iterationsForTimeLeft - 1);
    for (let k = seen + 1; k <= head.position; k++) await this.#take(k, head);
    this.#position = head.position;
    const validation = await this.#log.newestEvaluation(head);
    if (validation !== undefined)
      this.#validation = { accuracy: validation.accuracy, validationMeasure: measureOf(validation.metrics) };
  }

  async #take(k: number, { termRecord }: Head): Promise<void> {
    const { batch, update } = await this.#log.iteration(k, termRecord);
    const at = Date.parse(update.record.writer.at);
    const seconds = this.#lastAt === undefined ? undefined : (at - this.#lastAt) / 1000;
    this.#lastAt = at;
    this.#reward = finite(batch.record.metrics['critic/score/mean']);
    this.#loss = batch.record.loss.kind === 'sft' ? finite(update.record.metrics['actor/loss']) : undefined;
    if (seconds !== undefined && seconds > 0) this.#seconds.push(seconds);
    this.#tokensPerSecond = finite(update.record.timings['perf/response_throughput']);
  }

  #changeState(state: RunState, reason: string): void {
    if (state === this.#state && reason === this.#reason) return;
    this.#state = state;
    this.#reason = reason;
    this.#options.onState?.(state, reason);
  }

  #show(): void {
    const remainingS = timeLeft(this.#seconds, this.#iterations - this.#position);
    this.#options.onProgress({
      runId: this.#log.runId,
      state: this.#state,
      iteration: this.#position,
      iterations: this.#iterations,
      elapsedS: (performance.now() - this.#startedAt) / 1000,
      ...(this.#activity === undefined ? {} : { activity: this.#activity }),
      ...(this.#reward === undefined ? {} : { reward: this.#reward }),
      ...this.#validation,
      ...(this.#loss === undefined ? {} : { loss: this.#loss }),
      ...(this.#tokensPerSecond === undefined ? {} : { tokensPerSecond: this.#tokensPerSecond }),
      ...(remainingS === undefined ? {} : { remainingS }),
    });
  }
}

/** Seconds left: the median of the last iterations, times those to come. undefined before the first. */
export function timeLeft(iterationSeconds: readonly number[], iterationsLeft: number): number | undefined {
  const last = iterationSeconds.slice(-iterationsForTimeLeft).sort((a, b) => a - b);
  const median = last[Math.floor(last.length / 2)];
  return median === undefined ? undefined : median * Math.max(0, iterationsLeft);
}

function finite(value: number | string | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
