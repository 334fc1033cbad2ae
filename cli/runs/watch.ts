/** Following a run: what the store says is true, what the control process says is news. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { RunState } from '../../core/records/schema.ts';
import { liveNote, liveSubject } from '../../core/wire/messages.ts';
import { readMessage } from '../../infra/nats/incoming.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { timeLeft } from '../printer/progress.ts';
import type { ProgressFrame } from '../printer/progress.ts';
import type { LiveDisplay } from '../printer/live.ts';

const refreshMs = 200;

export interface WatchPorts {
  readonly log: RunLog;
  readonly iterations: number;
  readonly nc: NatsConnection;
  readonly display: LiveDisplay;
  readonly now: () => number;
  /** Ends the watching: detached, or the workflow ended. */
  readonly signal: AbortSignal;
  /** Called when the run is paused: a waiter may want to leave. */
  readonly onState?: (state: RunState) => void;
}

/** Shows progress until the signal. */
export async function watchRun(ports: WatchPorts): Promise<void> {
  const view = new RunView(ports);
  const notes = ports.nc.subscribe(liveSubject(ports.log.runId), {
    callback: (error, message) => {
      if (error !== null) return;
      const note = readMessage(message, liveNote);
      if (note !== undefined) view.note(note);
    },
  });
  while (!ports.signal.aborted) {
    await view.refresh();
    await nextLook(ports.signal);
  }
  await view.refresh();
  notes.unsubscribe();
  ports.display.end();
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
  readonly #ports: WatchPorts;
  readonly #startedAt: number;
  readonly #seconds: number[] = [];
  #position = 0;
  #lastAt: number | undefined;
  #activity: string | undefined;
  #reward: number | undefined;
  #loss: number | undefined;
  #accuracy: number | undefined;
  #tokensPerSecond: number | undefined;
  #state: RunState | undefined;
  #reason = '';

  constructor(ports: WatchPorts) {
    this.#ports = ports;
    this.#startedAt = ports.now();
  }

  note({
    stage,
    done,
    total,
    queued,
  }: {
    readonly stage: string;
    readonly done: number;
    readonly total: number;
    readonly queued?: string | undefined;
  }): void {
    const share = total > 0 ? ` ${Math.min(100, Math.round((100 * done) / total))} %` : '';
    this.#activity = queued === undefined ? `${stage}${share}` : `${stage} waits: ${queued}`;
    this.#show();
  }

  async refresh(): Promise<void> {
    const { log } = this.#ports;
    const status = await log.status();
    this.#changeState(status?.state, status?.reason?.message);
    const head = await log.head();
    if (head !== undefined) {
      for (let k = Math.max(this.#position, await log.first()) + 1; k <= head.position; k++) await this.#take(k);
      this.#position = head.position;
      const newest = (await log.evaluations()).at(-1);
      this.#accuracy = newest?.accuracy;
    }
    this.#show();
  }

  async #take(k: number): Promise<void> {
    const { batch, update } = await this.#ports.log.iteration(k);
    const at = Date.parse(update.record.writer.at);
    const seconds = this.#lastAt === undefined ? undefined : (at - this.#lastAt) / 1000;
    this.#lastAt = at;
    this.#reward = finite(batch.record.metrics['critic/score/mean']);
    this.#loss = batch.record.loss.kind === 'sft' ? finite(update.record.metrics['actor/loss']) : undefined;
    if (seconds !== undefined && seconds > 0) {
      this.#seconds.push(seconds);
      this.#tokensPerSecond = (finite(batch.record.metrics['training/tokens']) ?? 0) / seconds;
    }
  }

  #changeState(state: RunState | undefined, reason = ''): void {
    if (state === undefined || (state === this.#state && reason === this.#reason)) return;
    if (state === 'paused' || state === 'failed')
      this.#ports.display.note(`${this.#ports.log.runId} is ${state}${reason === '' ? '' : `: ${reason}`}`);
    this.#state = state;
    this.#reason = reason;
    this.#ports.onState?.(state);
  }

  #show(): void {
    this.#ports.display.update(this.#frame());
  }

  #frame(): ProgressFrame {
    const { log, iterations, now } = this.#ports;
    const remainingS = timeLeft(this.#seconds, iterations - this.#position);
    return {
      runId: log.runId,
      state: this.#state ?? 'queued',
      iteration: this.#position,
      iterations,
      elapsedS: (now() - this.#startedAt) / 1000,
      ...(this.#activity === undefined ? {} : { activity: this.#activity }),
      ...(this.#reward === undefined ? {} : { reward: this.#reward }),
      ...(this.#accuracy === undefined ? {} : { accuracy: this.#accuracy }),
      ...(this.#loss === undefined ? {} : { loss: this.#loss }),
      ...(this.#tokensPerSecond === undefined ? {} : { tokensPerSecond: this.#tokensPerSecond }),
      ...(remainingS === undefined ? {} : { remainingS }),
    };
  }
}

function finite(value: number | string | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
