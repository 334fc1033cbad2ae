/**
 * A group of Python processes, one for each device. Each gets every call, in the same order, and answers it. The end of
 * one is the end of the group.
 */
import type { Division } from '../../../../core/division.ts';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { at } from '../../../../core/at.ts';
import { InvalidInputError, RetryableError, TerminalError } from '../../../../core/errors.ts';
import type { Call } from '../../../../core/ports/policy.ts';
import { processEnvironment } from '../../../../infra/environment.ts';
import { packageRoot } from '../../../../infra/home.ts';
import { SharedMemory } from '../../../../infra/shared-memory.ts';
import { encodeFrame, protocol, readFrames } from './frames.ts';
import type { FromRank, Hello, RankError } from './frames.ts';

export interface GroupOptions {
  /** The folder of engines/ that has the ranks' program. */
  readonly engine: 'torch' | 'vllm';
  /** The Python that has torch. */
  readonly python: string;
  readonly device: 'cpu' | 'cuda';
  readonly ranks: number;
  /** How they share a model beside FSDP2. */
  readonly division?: Division;
  /** Threads of each rank. */
  readonly threads: number;
  readonly deterministic: boolean;
  /** Numbers of the GPUs that the group sees, among those that this process may use. Default: all of these. */
  readonly gpus?: readonly number[];
  /**
   * A group is hung when it has not moved for so long in a call, and for at least ten minutes in one that makes a
   * model. Default: ten minutes.
   */
  readonly hungAfterSeconds?: number;
  /** Gets each line that a rank prints. */
  readonly onLine?: (line: string) => void;
  /** Gets each rank's process when it has started. */
  readonly onStart?: (child: ChildProcess, rank: number) => void;
}

type Answer = { readonly ok: unknown } | { readonly error: RankError };

interface Pending {
  readonly id: number;
  readonly answers: Map<number, Answer>;
  readonly tick: Call['tick'];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: Error) => void;
  /** When it has last moved, in ms. */
  moved: number;
  /** It is hung when it has not moved for so many ms. */
  readonly hungAfterMs: number;
}

interface Rank {
  readonly child: ChildProcess;
  readonly channel: Duplex;
}

/** Libraries are loaded, and a model is made, without a sign of progress: by vLLM when it knows its sizes. */
const silentCalls: ReadonlySet<string> = new Set(['open', 'room']);
const keptLines = 20;
const patienceMs = 600_000;
const graceMs = 5000;
/** Time in which the end of a rank explains the failures of the others. */
const endMs = 2000;
/** Time for a hung rank to print its stack. */
const stackMs = 2000;

export class RankGroup {
  readonly memory: SharedMemory;
  readonly ranks: number;
  /** Resolves when a rank has ended although nobody closed the group, which no call can use any more. Never rejects. */
  readonly exited: Promise<void>;
  /** Memory for a copy of a state, which may still be read when the group has ended. */
  readonly #copy: SharedMemory;
  readonly #members: readonly Rank[];
  readonly #folder: string;
  readonly #hungAfterMs: number;
  readonly #watch: NodeJS.Timeout;
  #pending: Pending | undefined;
  #nextId = 1;
  #turn: Promise<unknown> = Promise.resolve();
  #closing = false;
  #ended: Error | undefined;
  #alive: number;
  #gone: () => void = () => {};
  #over: () => void = () => {};
  readonly #allGone: Promise<void>;

  private constructor(options: GroupOptions) {
    this.memory = new SharedMemory();
    this.#copy = new SharedMemory();
    this.ranks = options.ranks;
    this.#alive = options.ranks;
    this.#hungAfterMs = options.hungAfterSeconds === undefined ? patienceMs : 1000 * options.hungAfterSeconds;
    this.#folder = mkdtempSync(join(tmpdir(), 'petrel-ranks-'));
    this.exited = new Promise((resolve) => (this.#gone = resolve));
    this.#allGone = new Promise((resolve) => (this.#over = resolve));
    this.#members = Array.from({ length: options.ranks }, (_, rank) => this.#start(options, rank));
    this.#watch = setInterval(() => this.#endIfHung(), Math.min(1000, this.#hungAfterMs / 4));
    this.#watch.unref();
  }

  /** Throws RetryableError `EngineExited` when a rank ends before it is ready, TerminalError when they do not fit. */
  static async start(options: GroupOptions): Promise<RankGroup> {
    const group = new RankGroup(options);
    const hellos = await group.#greeted.catch(async (error: unknown) => {
      await group.close();
      throw error;
    });
    const first = at(hellos, 0);
    const other = hellos.find((hello) => factsText(hello) !== factsText(first));
    const wrong =
      first.protocol !== protocol
        ? `they speak protocol ${first.protocol}, this petrel ${protocol}`
        : other && `rank ${other.rank} has ${factsText(other)}, rank ${first.rank} ${factsText(first)}`;
    if (wrong !== undefined) {
      await group.close();
      throw new TerminalError('EngineUnusable', `the ranks of the ${options.engine} engine do not fit: ${wrong}`);
    }
    return group;
  }

  /** GPUs that a rank may use, all of them together. 0: it computes on processors. */
  get gpus(): number {
    return at(this.#hellos, 0).gpus;
  }

  readonly #hellos: Hello[] = [];
  #greet: (hellos: readonly Hello[]) => void = () => {};
  #refuse: (error: Error) => void = () => {};
  readonly #greeted = new Promise<readonly Hello[]>((resolve, reject) => {
    this.#greet = resolve;
    this.#refuse = reject;
  });

  /**
   * One at a time: the arrays of a call lie in shared memory until its answer has been read. Rejects with the signal's
   * reason as soon as it is aborted; the group finishes what it has begun.
   */
  turn<T>(work: (tick: Call['tick']) => Promise<T>, { signal, tick }: Call = {}): Promise<T> {
    const mine = this.#turn.then(() => {
      signal?.throwIfAborted();
      return work(tick);
    });
    this.#turn = mine.catch(() => {});
    if (signal === undefined) return mine;
    const settled = new AbortController();
    const aborted = new Promise<never>((_, reject) => {
      const leave = () => reject(signal.reason as Error);
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true, signal: settled.signal });
    });
    return Promise.race([mine, aborted]).finally(() => settled.abort());
  }

  /** A call that has no arrays. */
  exclusive<T = void>(name: string, args: object, call?: Call): Promise<T> {
    return this.turn((tick) => this.call<T>(name, args, tick), call);
  }

  /**
   * Rank 0's answer. Within a `turn`. Throws InvalidInputError when every rank says so. Any other failure ends the
   * group: RetryableError `EngineExited`.
   */
  async call<T = void>(name: string, args: object, tick?: Call['tick']): Promise<T> {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#closing) throw exitedError('it was closed');
    const id = this.#nextId++;
    const frame = encodeFrame({ id, call: name, args });
    const answers = await new Promise<readonly Answer[]>((resolve, reject) => {
      const hungAfterMs = silentCalls.has(name) ? Math.max(this.#hungAfterMs, patienceMs) : this.#hungAfterMs;
      this.#pending = { id, answers: new Map(), tick, resolve, reject, moved: Date.now(), hungAfterMs };
      for (const { channel } of this.#members) channel.write(frame);
    });
    const errors = answers.flatMap((answer) => ('error' in answer ? [answer.error] : []));
    const [error] = errors;
    if (error === undefined) return (at(answers, 0) as { readonly ok: T }).ok;
    if (errors.length === answers.length && errors.every(({ kind }) => kind === 'invalid_input'))
      throw new InvalidInputError(error.message);
    // When a rank dies, the others fail in what they do together, and may say so before its end is known here.
    if (this.ranks > 1 && !this.#closing) await Promise.race([this.exited, delay(endMs, undefined, { ref: false })]);
    throw this.#end(exitedError(error.message));
  }

  /** The memory for a copy stays until `close` is called. Throws RetryableError `EngineExited`. */
  useCopy(): { readonly memory: SharedMemory; readonly close: () => void } {
    if (this.#ended !== undefined || this.#closing) throw this.#ended ?? exitedError('it was closed');
    return { memory: this.#copy, close: this.#copy.share() };
  }

  async close(): Promise<void> {
    if (!this.#closing && this.#ended === undefined) {
      this.#closing = true;
      const frame = encodeFrame({ id: this.#nextId++, call: 'close', args: {} });
      for (const { channel } of this.#members) channel.end(frame);
    }
    const kill = setTimeout(() => this.#kill(), graceMs);
    await this.#allGone;
    clearTimeout(kill);
  }

  #start(options: GroupOptions, rank: number): Rank {
    const { engine, python, device, ranks, division = {}, threads, deterministic, gpus, onLine } = options;
    const rendezvous = join(this.#folder, 'rendezvous');
    const seconds = 2 * Math.ceil(this.#hungAfterMs / 1000);
    const settings = { rank, ranks, division, device, threads, deterministic, rendezvous, seconds };
    const program = join(packageRoot(), 'engines', engine, 'rank.py');
    const child = spawn(python, ['-I', '-B', program, JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', this.memory.fd, this.#copy.fd],
      detached: true,
      env: rankEnvironment(threads, deterministic, gpus),
    });
    options.onStart?.(child, rank);
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream as NodeJS.ReadableStream }).on('line', (line) => {
        lines.push(line);
        if (lines.length > keptLines) lines.shift();
        onLine?.(`rank ${rank}: ${line}`);
      });
    }
    const channel = child.stdio[3] as Duplex;
    channel.on('error', () => {}); // writing to a rank that has ended: `exit` follows
    readFrames(channel, (received) => this.#receive(rank, received));
    // Its own processes hold its output open: without them `close` would not come.
    child.once('exit', (code) => code !== 0 && killGroup(child));
    // A program that cannot be started is closed, too.
    let failed: string | undefined;
    child.on('error', (error) => (failed ??= error.message));
    child.once('close', (code, signal) => this.#lost(rank, failed ?? signal ?? `exit code ${code}`, lines));
    return { child, channel };
  }

  #receive(rank: number, frame: FromRank): void {
    if ('hello' in frame) {
      this.#hellos[rank] = frame.hello;
      if (Object.keys(this.#hellos).length === this.ranks) this.#greet(this.#hellos);
      return;
    }
    const pending = this.#pending;
    if (pending === undefined) return;
    pending.moved = Date.now();
    if ('tick' in frame) return pending.tick?.();
    if (frame.id !== pending.id) return;
    pending.answers.set(rank, frame);
    const isFatal = 'error' in frame && frame.error.kind === 'internal';
    if (isFatal || pending.answers.size === this.ranks) {
      this.#pending = undefined;
      pending.resolve([...pending.answers].sort(([a], [b]) => a - b).map(([, answer]) => answer));
    }
  }

  #lost(rank: number, how: string, lines: readonly string[]): void {
    const last = lines.findLast((line) => line.trim() !== '');
    this.#end(exitedError(`rank ${rank} ended (${how})${last === undefined ? '' : `; its last line: ${last}`}`));
    if (--this.#alive > 0) return;
    clearInterval(this.#watch);
    this.memory.close();
    this.#copy.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#over();
  }

  #endIfHung(): void {
    const pending = this.#pending;
    if (pending === undefined || Date.now() - pending.moved < pending.hungAfterMs) return;
    const silent = this.#members.map((_, rank) => rank).filter((rank) => !pending.answers.has(rank));
    // A rank that can prints where it stands before it ends.
    for (const rank of silent) at(this.#members, rank).child.kill('SIGABRT');
    const seconds = pending.hungAfterMs / 1000;
    this.#fail(exitedError(`rank ${silent.join(' and ')} did not move for ${seconds} s`));
    setTimeout(() => this.#kill(), stackMs).unref();
  }

  /** Ends every rank, and rejects the call that runs. */
  #end(error: Error): Error {
    const first = this.#fail(error);
    this.#kill();
    return first;
  }

  /** Rejects the call that runs, and every later one. */
  #fail(error: Error): Error {
    this.#ended ??= error;
    this.#refuse(this.#ended);
    this.#pending?.reject(this.#ended);
    this.#pending = undefined;
    if (!this.#closing) this.#gone();
    return this.#ended;
  }

  #kill(): void {
    for (const { child } of this.#members ?? []) {
      if (child.exitCode === null && child.signalCode === null) killGroup(child);
    }
  }
}

/** The group of processes that this one leads. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL'); // it has not made its group yet, or has ended
  }
}

const exitedError = (why: string) => new RetryableError('EngineExited', `the engine has ended: ${why}`);

const factsText = ({ protocol: spoken, device, torch, cuda, transformers }: Hello): string =>
  `protocol ${spoken}, ${device}, torch ${torch}${cuda === null ? '' : `, CUDA ${cuda}`}, transformers ${transformers}`;

/**
 * Turns of a loop in which a thread of OpenMP waits for the others before it sleeps; libgomp's own number is 300,000.
 * Where more threads work than there are processors, each waits for one that does not run. On 2 processors, torch alone
 * took 1,900 ms for a step of a tiny model and 4,700 ms for one of a larger one in each of three processes with 2
 * threads; with 10,000 it took 160 and 1,200 ms. One process by itself took 28 and 631 ms, and now 32 and 634.
 */
const spinCount = '10000';

/** The whole environment of a rank: nothing of the user's but where programs and the driver's libraries are. */
function rankEnvironment(threads: number, deterministic: boolean, gpus?: readonly number[]): NodeJS.ProcessEnv {
  const own = processEnvironment();
  const visible = own['CUDA_VISIBLE_DEVICES']?.split(',');
  const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LD_LIBRARY_PATH', 'CUDA_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES'];
  return {
    ...Object.fromEntries(kept.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]]))),
    ...(gpus !== undefined && { CUDA_VISIBLE_DEVICES: gpus.map((gpu) => visible?.[gpu] ?? gpu).join(',') }),
    HF_HUB_OFFLINE: '1',
    TRANSFORMERS_VERBOSITY: 'error',
    TOKENIZERS_PARALLELISM: 'false',
    PYTHONUNBUFFERED: '1',
    OMP_NUM_THREADS: String(threads),
    GOMP_SPINCOUNT: spinCount,
    GLOO_SOCKET_IFNAME: 'lo',
    NCCL_SOCKET_IFNAME: 'lo',
    ...(deterministic && { CUBLAS_WORKSPACE_CONFIG: ':4096:8', NCCL_ALGO: 'Ring', NCCL_PROTO: 'Simple' }),
  };
}
