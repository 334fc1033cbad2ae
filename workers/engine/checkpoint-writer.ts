/**
 * Writes checkpoints beside the engine. The engine's thread only copies the state; a thread of its own hashes the copy and
 * sends it to the store, while training goes on.
 */
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { errorOfKind } from '../../core/errors.ts';
import type { ErrorJson, PetrelErrorKind } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import type { ParameterInfo, TrainerEngine } from '../../core/ports.ts';
import { builtFile } from '../../infra/home.ts';
import type { StateDigests } from '../../infra/store/digest.ts';
import { CheckpointCopies } from './checkpoint-copies.ts';
import type { Room } from './checkpoint-copies.ts';

export interface WriteJob {
  readonly id: number;
  /** Whose checkpoint it is, and where it goes. */
  readonly place: { readonly store: string; readonly runId: RunId; readonly term: number; readonly iteration: number };
  readonly room: Room;
  readonly steps: number;
  readonly parameters: readonly ParameterInfo[];
  readonly digests: StateDigests;
}

export interface WriterThreadData {
  readonly ticks: SharedArrayBuffer;
}

export type ToWriter =
  /** Room is wanted whose pages have been touched. */
  | { readonly type: 'prepare'; readonly bytes: number; readonly to: MessagePort }
  | ({ readonly type: 'write' } & WriteJob)
  /** No more will come. */
  | { readonly type: 'end'; readonly room: Room | undefined };

export type FromWriter =
  /** Its room comes back. */
  | {
      readonly type: 'written';
      readonly id: number;
      readonly manifest: string;
      readonly ms: number;
      readonly room: Room;
    }
  /** Its room does not: something may still be reading it. */
  | {
      readonly type: 'failed';
      readonly id: number;
      readonly kind: PetrelErrorKind | 'unknown';
      readonly error: ErrorJson;
    };

export interface Written {
  /** The manifest's key. */
  readonly manifest: string;
  readonly ms: number;
}

/** Bytes of a part of a state. A thread takes a tenth of a second to start. */
const worthAThread = 16 * 2 ** 20;

export class CheckpointWriter {
  readonly #ticks: SharedArrayBuffer;
  readonly #copies = new CheckpointCopies();
  #thread: WriterThread | undefined;
  /** Where prepared room will come. */
  #prepared: MessagePort | undefined;
  #nextId = 1;

  /** `ticks`: one Int32 that rises whenever bytes have gone to the store. */
  constructor(ticks = new SharedArrayBuffer(4)) {
    this.#ticks = ticks;
  }

  /** A copy will be due soon: its memory is made ready meanwhile. */
  prepare(trainer: TrainerEngine): void {
    if (this.#copies.hasRoomFor(trainer)) return;
    const { port1, port2 } = new MessageChannel();
    this.#prepared?.close();
    this.#prepared = port1;
    this.#running().prepare(trainer.weights.byteLength, port2);
  }

  /** Copies the state before it returns: then it may change. */
  async write(place: WriteJob['place'], trainer: TrainerEngine, digests: StateDigests): Promise<Written> {
    const { steps, parameters } = trainer;
    const thread = this.#running();
    this.#takePrepared();
    const { manifest, ms, room } = await thread.run({
      id: this.#nextId++,
      place,
      room: this.#copies.copy(trainer),
      steps,
      parameters,
      digests,
    });
    this.#copies.giveBack(room);
    return { manifest, ms };
  }

  #running(): WriterThread {
    if (this.#thread?.ended !== false) this.#thread = new WriterThread(this.#ticks);
    return this.#thread;
  }

  /** Asked, not waited for: the engine's thread does not turn to its messages while it trains. */
  #takePrepared(): void {
    const come = this.#prepared && receiveMessageOnPort(this.#prepared);
    if (come !== undefined) this.#copies.giveBack(come.message as Room);
    this.#prepared?.close();
    this.#prepared = undefined;
  }

  /** The trainer is closed. What is being written is finished. Much memory goes at once, with the thread; little is left to the collector. */
  release(): void {
    this.#takePrepared();
    const room = this.#copies.empty();
    if (room === undefined || room[0].byteLength < worthAThread) return;
    this.#thread?.end(room);
    this.#thread = undefined;
  }
}

interface Pending {
  readonly resolve: (message: Extract<FromWriter, { type: 'written' }>) => void;
  readonly reject: (error: Error) => void;
}

/** The engine's side of one such thread. */
class WriterThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  ended = false;

  constructor(ticks: SharedArrayBuffer) {
    const workerData: WriterThreadData = { ticks };
    this.#worker = new Worker(builtFile('workers/engine/checkpoint-writer-thread.js'), { workerData });
    this.#worker.unref();
    this.#worker.on('message', (message: FromWriter) => this.#receive(message));
    this.#worker.on('error', (error) => this.#died(error));
    this.#worker.on('exit', (code) => this.#died(new Error(`the checkpoint writer ended with code ${code}`)));
  }

  /** The room goes to the thread. */
  run(job: WriteJob): Promise<Extract<FromWriter, { type: 'written' }>> {
    this.#worker.ref(); // a process that ends waits for it
    this.#worker.postMessage({ type: 'write', ...job } satisfies ToWriter, job.room);
    return new Promise((resolve, reject) => this.#pending.set(job.id, { resolve, reject }));
  }

  prepare(bytes: number, to: MessagePort): void {
    this.#worker.postMessage({ type: 'prepare', bytes, to } satisfies ToWriter, [to]);
  }

  end(room: Room | undefined): void {
    this.#worker.postMessage({ type: 'end', room } satisfies ToWriter, room ?? []);
  }

  #receive(message: FromWriter): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#worker.unref();
    if (message.type === 'written') return pending?.resolve(message);
    const { code, message: text, ...detail } = message.error;
    pending?.reject(message.kind === 'unknown' ? new Error(text) : errorOfKind(message.kind, code, text, detail));
  }

  #died(error: Error): void {
    this.ended = true;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
