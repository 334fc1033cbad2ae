/**
 * One scorer process: it is started, gets one sample at a time, is watched for time and memory, and is ended with all
 * its children.
 */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { InvalidInputError } from '../../core/errors.ts';
import type { Scored } from '../types.ts';
import { scorerEnvironment } from '../environment.ts';
import type { Launch } from './launch.ts';
import type { Desk } from './host-types.ts';
import { LineSplitter } from '../lines.ts';
import { MARK_VARIABLE, parseReply, type Reply, type Request, type ScoreCall } from './protocol.ts';
import { ReapedProgram, type TreeUsage } from './reaper.ts';
import { TimeLimit } from './time-limit.ts';
import { wordsOf } from './words.ts';

export interface ProcessLimits {
  /** One call. */
  readonly timeoutMs: number;
  /** Memory of all processes of the scorer together, beyond their size after loading. */
  readonly memoryMb: number;
  /** Time for starting and loading the module. */
  readonly loadTimeoutMs: number;
}

/** Why a process has ended. */
export interface Death {
  readonly type: 'died';
  readonly code: 'timeout' | 'memory' | 'crashed';
  readonly reason: string;
}

/** Receives what the scorer prints, line by line. */
export type OnPrint = (line: string) => void;

const memoryCheckMs = 50;
/** Limit of parallel processes, against endless forks. */
const maxProcesses = 512;
/** The last lines of stderr, for the reason of an end. */
const keptErrors = 20;

export class ScorerProcess {
  readonly #program: ReapedProgram;
  readonly #limits: ProcessLimits;
  readonly #exited: Promise<void>;
  readonly #clean: (text: string) => string;
  readonly #desk: Desk | undefined;
  #onPrint: OnPrint;
  #waiting: ((outcome: Reply | Death) => void) | undefined;
  #death: Death | undefined;
  #lastErrors: string[] = [];
  #base: { readonly resident: number; readonly proportional: number } = { resident: 0, proportional: 0 };

  /**
   * @throws InvalidInputError when the program cannot be started or the module cannot be loaded; the signal's reason
   * when it is aborted.
   */
  static async start(
    launch: Launch,
    limits: ProcessLimits,
    onPrint: OnPrint,
    signal?: AbortSignal,
  ): Promise<ScorerProcess> {
    const started = new ScorerProcess(launch, limits, onPrint);
    const giveUp = () => started.#program.kill();
    signal?.addEventListener('abort', giveUp);
    const tooLong = `it was not loaded within ${limits.loadTimeoutMs / 1000} s`;
    const outcome = await started.#ask(withAddress(launch.load, started.#desk), limits.loadTimeoutMs, tooLong);
    signal?.removeEventListener('abort', giveUp);
    if (outcome.type !== 'ready') {
      await started.kill();
      signal?.throwIfAborted();
      const reason = 'reason' in outcome ? outcome.reason : outcome.type;
      throw new InvalidInputError(`the scorer cannot be loaded: ${reason}`, {
        ...(launch.shownAs === undefined ? {} : { where: launch.shownAs }),
      });
    }
    started.#base = {
      resident: (await started.#program.usage('r'))?.mib ?? 0,
      proportional: (await started.#program.usage('p'))?.mib ?? 0,
    };
    return started;
  }

  private constructor(launch: Launch, limits: ProcessLimits, onPrint: OnPrint) {
    this.#limits = limits;
    this.#onPrint = onPrint;
    this.#clean = wordsOf(launch);
    const mark = `@petrel-${randomBytes(8).toString('hex')} `;
    const outside = scorerEnvironment(process.env, launch.env, launch.secrets);
    const env = { ...outside, [MARK_VARIABLE]: mark };
    this.#desk = launch.desks?.open();
    this.#program = new ReapedProgram(launch.command, launch.args, env);
    this.#exited = this.#program.ended.then(({ code, signal }) => {
      stderr.end();
      this.#desk?.close();
      this.#end(deathOf(code, signal, this.#lastErrors));
    });
    const stdout = new LineSplitter((line) => {
      const reply = parseReply(line, mark);
      if (reply !== undefined) this.#settle(this.#cleaned(reply));
      else this.#print(line);
    });
    const stderr = new LineSplitter((line) => {
      this.#print(line);
      this.#lastErrors = [...this.#lastErrors, this.#clean(line)].slice(-keptErrors);
    });
    this.#program.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    this.#program.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  }

  /** The reply to one call, or how the process died. Never rejects. */
  async score(id: number, call: ScoreCall, onPrint: OnPrint): Promise<Reply | Death> {
    this.#onPrint = onPrint;
    const watch = setInterval(() => void this.#checkMemory(), memoryCheckMs);
    const tooLong = `no score within ${this.#limits.timeoutMs / 1000} s`;
    return this.#ask({ id, ...call }, this.#limits.timeoutMs, tooLong).finally(() => clearInterval(watch));
  }

  get dead(): boolean {
    return this.#death !== undefined;
  }

  /** Ends the process and all its descendants. */
  async kill(): Promise<void> {
    this.#program.kill();
    await this.#exited;
  }

  async #ask(request: Request, timeoutMs: number, tooLong: string): Promise<Reply | Death> {
    if (this.#death !== undefined) return this.#death;
    const answered = new Promise<Reply | Death>((resolve) => (this.#waiting = resolve));
    const limit = new TimeLimit(timeoutMs, () => this.#fail('timeout', tooLong), this.#desk);
    this.#program.stdin.write(`${JSON.stringify(request)}\n`);
    try {
      const outcome = await answered;
      if (outcome.type === 'died') await this.#exited;
      // What it printed to stderr before its reply is readable, but perhaps not yet read.
      else await nextTurn();
      return outcome;
    } finally {
      limit.end();
    }
  }

  /**
   * Resident memory is fast to read, but counts shared memory once per process. So it only triggers the exact check.
   */
  async #checkMemory(): Promise<void> {
    const resident = await this.#program.usage('r');
    if (resident === undefined || this.#death !== undefined) return;
    if (resident.processes > maxProcesses)
      return this.#fail('crashed', `it ran ${resident.processes} processes at a time, the limit is ${maxProcesses}`);
    if (resident.mib - this.#base.resident <= this.#limits.memoryMb) return;
    this.#checkProportional(await this.#program.usage('p'));
  }

  #checkProportional(usage: TreeUsage | undefined): void {
    if (usage === undefined || this.#death !== undefined) return;
    const usedMb = usage.mib - this.#base.proportional;
    if (usedMb > this.#limits.memoryMb)
      this.#fail('memory', `${Math.round(usedMb)} MiB used, the limit is ${this.#limits.memoryMb} MiB`);
  }

  #fail(code: Death['code'], reason: string): void {
    this.#end({ type: 'died', code, reason });
    this.#program.kill();
  }

  /** The first cause is kept: a kill because of a limit is not a crash. */
  #end(death: Death): void {
    this.#death ??= death;
    this.#settle(this.#death);
  }

  #settle(outcome: Reply | Death): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(outcome);
  }

  #print(line: string): void {
    if (line !== '') this.#onPrint(this.#clean(line));
  }

  #cleaned(reply: Reply): Reply {
    if ('reason' in reply) return { ...reply, reason: this.#clean(reply.reason) };
    if (reply.type === 'results') return { ...reply, results: reply.results.map((one) => this.#cleanedColumns(one)) };
    return reply.type === 'result' ? this.#cleanedColumns(reply) : reply;
  }

  #cleanedColumns<T extends Scored>(scored: T): T {
    const columns = Object.entries(scored.columns).map(([name, value]) => [
      this.#clean(name),
      typeof value === 'string' ? this.#clean(value) : value,
    ]);
    return { ...scored, columns: Object.fromEntries(columns) };
  }
}

/** The setting that verl's scorers get, where there is an endpoint. */
function withAddress(load: Request, desk: Desk | undefined): Request {
  if (desk === undefined || load.type !== 'load') return load;
  return { ...load, settings: { ...load.settings, reward_router_address: desk.address } };
}

function deathOf(code: number | null, signal: NodeJS.Signals | null, errors: readonly string[]): Death {
  if (errors.some((line) => /heap out of memory|MemoryError/.test(line))) {
    return { type: 'died', code: 'memory', reason: 'the memory limit was reached' };
  }
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const said = errors
    .filter((line) => line.trim() !== '')
    .slice(-3)
    .join(' | ');
  return {
    type: 'died',
    code: 'crashed',
    reason: `the scorer process ended with ${how}${said === '' ? '' : `: ${said}`}`,
  };
}
