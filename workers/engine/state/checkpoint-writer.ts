/**
 * Writes checkpoints in parallel with the engine. The engine's thread only copies the state. Another thread hashes the
 * copy and writes it to the store while training continues.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { thrownFromJson } from '../../../core/errors.ts';
import type { ThrownJson } from '../../../core/errors.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { PolicyEngine, StateCopy } from '../../../core/ports/policy.ts';
import type { BlockHash, ParameterInfo, StatePart } from '../../../core/parameters.ts';
import { componentOf } from '../../../core/records/components.ts';
import type { Components } from '../../../core/records/components.ts';
import type { CheckpointOutput } from '../../../core/wire/jobs/index.ts';
import { builtProgram } from '../../../infra/home.ts';
import type { PartRoots, StateDigests } from '../../../log/objects/digest.ts';
import { rootsOf } from '../engines/roots.ts';
import type { RunDigests, RunState } from './state.ts';
import { CheckpointCopies, sizesOf } from './checkpoint-copies.ts';
import type { Room } from './checkpoint-copies.ts';

export interface WriteJob {
  readonly id: number;
  /** Which checkpoint it is, and its store. `isPart`: only its shards are written. */
  readonly place: {
    readonly store: string;
    readonly runId: RunId;
    readonly term: number;
    readonly iteration: number;
    readonly isPart?: boolean;
  };
  readonly stateDigest: Digest;
  readonly components: Components<CopiedComponent>;
}

/** A copy of a component's state. */
export interface CopiedComponent {
  /** In memory that is given to the thread, or in shared memory. */
  readonly copy: { readonly room: Room } | { readonly shared: SharedCopy };
  readonly steps: number;
  readonly parameters: readonly ParameterInfo[];
  readonly parts: readonly StatePart[];
  readonly digests: StateDigests & { readonly naming?: 'lineage' };
  /** Roots of the parts. */
  readonly roots: PartRoots;
  readonly blockHash: BlockHash;
}

export type SharedCopy = Pick<StateCopy, 'fd' | 'starts'>;

export interface WriterThreadData {
  readonly ticks: SharedArrayBuffer;
}

export type ToWriter =
  /** Asks for memory with touched pages. */
  | { readonly type: 'prepare'; readonly sizes: readonly number[]; readonly to: MessagePort }
  | ({ readonly type: 'write' } & WriteJob)
  /** No further message follows. */
  | { readonly type: 'end'; readonly memory: readonly ArrayBuffer[] };

export type FromWriter =
  /** The written copy's memory returns. */
  | {
      readonly type: 'written';
      readonly id: number;
      readonly saved: CheckpointOutput;
      readonly ms: number;
      readonly rooms: Components<Room>;
    }
  /** The memory does not return, because a request may still be reading it. */
  | { readonly type: 'failed'; readonly id: number; readonly thrown: ThrownJson };

export interface Written {
  readonly saved: CheckpointOutput;
  readonly ms: number;
}

/** Bytes of a part of a state. The thread needs a tenth of a second to start. */
const worthAThread = 16 * 2 ** 20;

export class CheckpointWriter {
  readonly #ticks: SharedArrayBuffer;
  /** Copies by component. */
  readonly #copies = new Map<string, CheckpointCopies>();
  #thread: WriterThread | undefined;
  /** Receives the prepared memory. */
  #prepared: MessagePort | undefined;
  /** The component that it is for. */
  #preparedFor = 'actor';
  #nextId = 1;

  /** `ticks`: one Int32 that rises whenever bytes were written to the store. */
  constructor(ticks = new SharedArrayBuffer(4)) {
    this.#ticks = ticks;
  }

  /** A copy will be due soon: prepares the memory of this component in advance. */
  prepare(engine: PolicyEngine, component = 'actor'): void {
    if (engine.copy !== undefined || this.#copiesOf(component).hasRoomFor(engine)) return;
    this.#preparedFor = component;
    const { port1, port2 } = new MessageChannel();
    this.#prepared?.close();
    this.#prepared = port1;
    this.#running().prepare(sizesOf(engine), port2);
  }

  /**
   * Resolves when the state is copied, so the caller may change it then; `written` resolves when the copy is stored.
   */
  async write(
    place: WriteJob['place'],
    { engines, blockHash }: Pick<RunState, 'engines' | 'blockHash'>,
    { stateDigest, components: digests }: RunDigests,
  ): Promise<{ readonly written: Promise<Written> }> {
    const thread = this.#running();
    await this.#awaitPrepared();
    const components: Record<string, CopiedComponent> = {};
    const shared: StateCopy[] = [];
    try {
      for (const [name, engine] of Object.entries(engines)) {
        const { steps, parameters, parts } = engine;
        const {
          stateDigest: own,
          weightsDigest,
          naming,
          roots = await rootsOf(engine, blockHash),
        } = componentOf(digests, name);
        const outside = await engine.copy?.();
        if (outside !== undefined) shared.push(outside);
        const copy =
          outside === undefined
            ? { room: await this.#copiesOf(name).copy(engine) }
            : { shared: { fd: outside.fd, starts: outside.starts } };
        const named = { stateDigest: own, weightsDigest, ...(naming && { naming }) };
        components[name] = { copy, steps, parameters, parts: [...parts], digests: named, roots, blockHash };
      }
    } catch (error) {
      for (const { release } of shared) release();
      throw error;
    }
    return { written: this.#written(thread, { id: this.#nextId++, place, stateDigest, components }, shared) };
  }

  #copiesOf(component: string): CheckpointCopies {
    const copies = this.#copies.get(component) ?? new CheckpointCopies();
    this.#copies.set(component, copies);
    return copies;
  }

  async #written(thread: WriterThread, job: WriteJob, shared: readonly StateCopy[]): Promise<Written> {
    try {
      const { saved, ms, rooms } = await thread.run(job);
      for (const [name, room] of Object.entries(rooms)) this.#copiesOf(name).giveBack(room);
      return { saved, ms };
    } finally {
      for (const { release } of shared) release();
    }
  }

  #running(): WriterThread {
    if (this.#thread?.ended !== false) this.#thread = new WriterThread(this.#ticks);
    return this.#thread;
  }

  /**
   * Memory that is still being prepared is worth waiting for: other memory would take longer, and both would be held.
   */
  async #awaitPrepared(): Promise<void> {
    const port = this.#prepared;
    this.#prepared = undefined;
    if (port === undefined) return;
    const room = await new Promise<Room | undefined>((resolve) => {
      port.once('message', resolve);
      port.once('close', () => resolve(undefined)); // the thread has ended
    });
    port.close();
    if (room !== undefined) this.#copiesOf(this.#preparedFor).giveBack(room);
  }

  /**
   * The engine is closed. Running writes are completed. A large memory is freed at once by ending the thread; a small
   * one is left to the garbage collector.
   */
  release(): void {
    this.#prepared?.close(); // frees what has come
    this.#prepared = undefined;
    const rooms = [...this.#copies.values()].flatMap((copies) => copies.empty() ?? []);
    if (!rooms.some((buffer) => buffer.byteLength >= worthAThread)) return;
    this.#thread?.end(rooms);
    this.#thread = undefined;
  }
}

interface Pending {
  readonly resolve: (message: Extract<FromWriter, { type: 'written' }>) => void;
  readonly reject: (error: Error) => void;
}

/** The engine's side of such a thread. */
class WriterThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  ended = false;

  constructor(ticks: SharedArrayBuffer) {
    const workerData: WriterThreadData = { ticks };
    this.#worker = new Worker(builtProgram('checkpoint-writer-thread'), { workerData });
    this.#worker.unref();
    this.#worker.on('message', (message: FromWriter) => this.#receive(message));
    this.#worker.on('error', (error) => this.#died(error));
    this.#worker.on('exit', (code) => this.#died(new Error(`the checkpoint writer ended with code ${code}`)));
  }

  /** Transfers the memory to the thread. */
  run(job: WriteJob): Promise<Extract<FromWriter, { type: 'written' }>> {
    this.#worker.ref(); // a process that ends waits for the write
    const memory = Object.values(job.components).flatMap(({ copy }) => ('room' in copy ? [...copy.room] : []));
    this.#worker.postMessage({ type: 'write', ...job } satisfies ToWriter, memory);
    return new Promise((resolve, reject) => this.#pending.set(job.id, { resolve, reject }));
  }

  prepare(sizes: readonly number[], to: MessagePort): void {
    this.#worker.postMessage({ type: 'prepare', sizes, to } satisfies ToWriter, [to]);
  }

  end(memory: readonly ArrayBuffer[]): void {
    this.#worker.postMessage({ type: 'end', memory } satisfies ToWriter, [...memory]);
  }

  #receive(message: FromWriter): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#worker.unref();
    if (message.type === 'written') return pending?.resolve(message);
    pending?.reject(thrownFromJson(message.thrown));
  }

  #died(error: Error): void {
    this.ended = true;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
