/** One scorer process: started, asked one sample at a time, watched for time and memory, killed with all it started. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { InvalidInputError } from '../../core/errors.ts';
import type { ScorerInput } from '../types.ts';
import type { Launch } from './launch.ts';
import { LineSplitter } from './lines.ts';
import { MARK_VARIABLE, parseReply, type Reply, type Request } from './protocol.ts';
import { residentMb } from './resident.ts';

export interface ProcessLimits {
  /** One call. */
  readonly timeoutMs: number;
  /** Beyond what the loaded process takes. */
  readonly memoryMb: number;
  /** Starting and loading the module. */
  readonly loadTimeoutMs: number;
}

/** Why a process is gone. */
export interface Death {
  readonly type: 'died';
  readonly code: 'timeout' | 'memory' | 'crashed';
  readonly reason: string;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const MEMORY_CHECK_MS = 50;
const KEPT_OUTPUT = 4096;

export class ScorerProcess {
  readonly #child: Child;
  readonly #limits: ProcessLimits;
  readonly #exited: Promise<void>;
  #waiting: ((outcome: Reply | Death) => void) | undefined;
  #death: Death | undefined;
  #errors = '';
  #baseMb = 0;

  /** @throws InvalidInputError when the program can't be started or the module can't be loaded. */
  static async start(launch: Launch, limits: ProcessLimits, onOutput: (text: string) => void): Promise<ScorerProcess> {
    const started = new ScorerProcess(launch, limits, onOutput);
    const outcome = await started.#ask(launch.load, limits.loadTimeoutMs, false);
    if (outcome.type !== 'ready') {
      await started.kill();
      const reason = 'reason' in outcome ? outcome.reason : outcome.type;
      throw new InvalidInputError(`the scorer cannot be loaded: ${reason}`, {
        ...('module' in launch.load ? { where: launch.load.module } : {}),
      });
    }
    started.#baseMb = (await residentMb(started.#child.pid)) ?? 0;
    return started;
  }

  private constructor(launch: Launch, limits: ProcessLimits, onOutput: (text: string) => void) {
    this.#limits = limits;
    const mark = `@petrel-${randomBytes(8).toString('hex')} `;
    // A session of its own: what the scorer started dies with it, and Ctrl-C goes to the parent alone.
    this.#child = spawn(launch.command, launch.args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, [MARK_VARIABLE]: mark },
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#end(deathOf(code, signal, this.#errors));
        resolve();
      });
      this.#child.once('error', (error) => {
        this.#end({ type: 'died', code: 'crashed', reason: `${launch.command} cannot be started: ${error.message}` });
        resolve();
      });
    });
    const lines = new LineSplitter((line) => {
      const reply = parseReply(line, mark);
      if (reply !== undefined) this.#settle(reply);
      else if (line !== '') onOutput(line);
    });
    this.#child.stdout.on('data', (chunk: Buffer) => lines.push(chunk));
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-KEPT_OUTPUT);
      onOutput(chunk.toString());
    });
    this.#child.stdin.on('error', () => undefined); // A dead child: its exit says why.
  }

  /** The reply to one sample, or how the process died over it. Never rejects. */
  async score(id: number, input: ScorerInput): Promise<Reply | Death> {
    return this.#ask({ type: 'score', id, input }, this.#limits.timeoutMs, true);
  }

  get dead(): boolean {
    return this.#death !== undefined;
  }

  /** Ends the process and everything it started. */
  async kill(): Promise<void> {
    this.#signal();
    await this.#exited;
  }

  async #ask(request: Request, timeoutMs: number, watchMemory: boolean): Promise<Reply | Death> {
    if (this.#death !== undefined) return this.#death;
    const answered = new Promise<Reply | Death>((resolve) => (this.#waiting = resolve));
    const timeout = setTimeout(() => this.#fail('timeout', `no score within ${timeoutMs / 1000} s`), timeoutMs);
    const watch = watchMemory ? setInterval(() => void this.#checkMemory(), MEMORY_CHECK_MS) : undefined;
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    try {
      const outcome = await answered;
      if (outcome.type === 'died') await this.#exited;
      return outcome;
    } finally {
      clearTimeout(timeout);
      clearInterval(watch);
    }
  }

  async #checkMemory(): Promise<void> {
    const usedMb = ((await residentMb(this.#child.pid)) ?? 0) - this.#baseMb;
    if (usedMb > this.#limits.memoryMb) {
      this.#fail('memory', `${Math.round(usedMb)} MiB used, the limit is ${this.#limits.memoryMb} MiB`);
    }
  }

  #fail(code: Death['code'], reason: string): void {
    this.#end({ type: 'died', code, reason });
    this.#signal();
  }

  /** The first cause stands: a kill because of a limit isn't a crash. */
  #end(death: Death): void {
    this.#death ??= death;
    this.#settle(this.#death);
  }

  #settle(outcome: Reply | Death): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(outcome);
  }

  #signal(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      this.#child.kill('SIGKILL'); // The session isn't there yet, or the process is gone.
    }
  }
}

function deathOf(code: number | null, signal: NodeJS.Signals | null, errors: string): Death {
  if (/heap out of memory|MemoryError/.test(errors)) {
    return { type: 'died', code: 'memory', reason: 'the memory limit was reached' };
  }
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const said = errors.trim().split('\n').slice(-3).join(' | ');
  return {
    type: 'died',
    code: 'crashed',
    reason: `the scorer process ended with ${how}${said === '' ? '' : `: ${said}`}`,
  };
}
