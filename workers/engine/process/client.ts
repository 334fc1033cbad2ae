/** The main thread's interface to the engine thread. */
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { thrownFromJson } from '../../../core/errors.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type { JobMessage } from '../../../core/wire/messages.ts';
import type { NewWeights, WeightsHolders } from '../../../core/wire/weights.ts';
import { nativeTicks } from '../engines/native/progress.ts';
import type { EndedSample } from '../job/context.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './protocol.ts';

export interface EngineJobPorts {
  /** Aborted when the result is no longer needed: the work stops at its next step, and the job is rejected. */
  readonly signal: AbortSignal;
  readonly progress: (done: number, total: number, note: string) => void;
  readonly say: (text: string) => void;
  /** Samples that have ended, of a job that says how it will be scored. */
  readonly ended: (samples: readonly EndedSample[]) => void;
  /** Partial samples for the next worker of the job. */
  readonly journal: (text: string, tokens: number) => void;
}

export interface EngineClientOptions extends Omit<EngineThreadData, 'ticks'> {
  /** The thread ended unexpectedly, so nothing in this process can be trusted. */
  readonly onDeath: (error: Error) => void;
}

/** What happened to the state in memory when its worker left. */
export interface LastState {
  readonly runId?: string;
  readonly text: string;
}

type Ready = Extract<FromEngine, { type: 'ready' }>;

interface Pending extends EngineJobPorts {
  readonly resolve: (value: EngineAnswer) => void;
  readonly reject: (error: Error) => void;
}

export interface EngineAnswer {
  readonly output: Readonly<Record<string, unknown>>;
  readonly seconds: number;
  /** Operational metrics: core/metrics.ts. */
  readonly counts: Readonly<Record<string, number>>;
}

export class EngineClient {
  readonly facts: readonly EngineFacts[];
  /** URL at which other processes get the weights that this one has. */
  readonly serves: string | undefined;
  readonly #thread: Worker;
  readonly #ticks: Int32Array;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #closing = false;
  #saveMs: number | undefined;
  #onLastState: (state: LastState) => void = () => {};

  private constructor(thread: Worker, ticks: Int32Array, { facts, serves }: Ready) {
    this.#thread = thread;
    this.#ticks = ticks;
    this.facts = facts;
    this.serves = serves;
    thread.on('message', (message: FromEngine) => this.#receive(message));
  }

  static async start({ onDeath, ...data }: EngineClientOptions): Promise<EngineClient> {
    const ticks = new SharedArrayBuffer(4);
    const workerData: EngineThreadData = { ...data, ticks };
    const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
    const thread = new Worker(fileURLToPath(new URL(`./thread${extension}`, import.meta.url)), { workerData });
    const ready = await new Promise<Ready>((resolve, reject) => {
      thread.once('error', reject);
      thread.once('message', (message: FromEngine) => {
        if (message.type === 'ready') resolve(message);
        else reject(new Error(`expected ready, got ${message.type}`));
      });
    });
    thread.on('error', onDeath);
    const client = new EngineClient(thread, new Int32Array(ticks), ready);
    // A terminated thread has exit code 1 too.
    thread.on(
      'exit',
      (code) => code !== 0 && !client.#closing && onDeath(new Error(`the engine thread ended with code ${code}`)),
    );
    return client;
  }

  /** Rises with committed work, and with the operations of an engine that computes in this process. */
  get ticks(): number {
    return Atomics.load(this.#ticks, 0) + nativeTicks();
  }

  /** Duration of writing the last checkpoint; undefined before the first. */
  get saveMs(): number | undefined {
    return this.#saveMs;
  }

  /** `journal`: entries that other workers wrote for the job. `weights`: whom to ask for its weights. */
  run(
    message: JobMessage,
    given: { readonly journal: readonly string[]; readonly weights: WeightsHolders | undefined },
    ports: EngineJobPorts,
  ): Promise<EngineAnswer> {
    const id = this.#nextId++;
    // The engine's thread reads no messages while it trains, but it can read shared memory.
    const cancelled = new Int32Array(new SharedArrayBuffer(4));
    const cancel = () => {
      Atomics.store(cancelled, 0, 1);
      this.#send({ type: 'cancel', id });
    };
    ports.signal.addEventListener('abort', cancel, { once: true });
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { ...ports, resolve, reject });
      const { journal, weights } = given;
      this.#send({ type: 'job', id, message, journal, cancelled, ...(weights && { weights }) });
    });
  }

  /** Frees the memory of the run, or of these components. */
  release(runId: string, components?: readonly string[]): void {
    this.#send({ type: 'release', runId, ...(components && { components }) });
  }

  /** New weights were committed, of which the process may have those before. */
  newWeights(committed: NewWeights, holders: readonly string[]): void {
    this.#send({ type: 'new-weights', committed, holders });
  }

  /** Journal entries were lost: live samples are written again. */
  journalLost(): void {
    this.#send({ type: 'journal-lost' });
  }

  /** Drops the samples of this run, because no process waits for them. */
  abandon(runId: string): void {
    this.#send({ type: 'abandon', runId });
  }

  /** Writes samples in flight to the journal and rejects their jobs with PreemptedError. */
  requeue(because: string): void {
    this.#send({ type: 'requeue', because });
  }

  /** Completes running writes after the jobs of a trainer, and saves the state in memory if there is time. */
  saveLast(inTime: boolean): Promise<LastState> {
    return new Promise((resolve) => {
      this.#onLastState = resolve;
      this.#send({ type: 'save-last', inTime });
    });
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#send({ type: 'close' });
    await this.#thread.terminate();
  }

  #send(message: ToEngine): void {
    this.#thread.postMessage(message);
  }

  #receive(message: FromEngine): void {
    if (message.type === 'ready') return;
    if (message.type === 'saved') return void (this.#saveMs = message.ms);
    if (message.type === 'saved-last') return this.#onLastState(message);
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    if (message.type === 'progress') return pending.progress(message.done, message.total, message.note);
    if (message.type === 'say') return pending.say(message.text);
    if (message.type === 'ended') return pending.ended(message.samples);
    if (message.type === 'journal') return pending.journal(message.text, message.tokens);
    this.#pending.delete(message.id);
    if (message.type === 'done')
      pending.resolve({ output: message.output, seconds: message.seconds, counts: message.counts });
    else pending.reject(thrownFromJson(message.thrown));
  }
}

/** What a worker needs of its engine. */
export type Engine = Pick<EngineClient, keyof EngineClient>;
