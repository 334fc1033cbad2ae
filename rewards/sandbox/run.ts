/** Runs one program in a sandbox of its own, to its end or to a limit. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { Cgroup } from './cgroup.ts';
import { sandboxCommand } from './command.ts';
import type { ExceededLimit, SandboxLimits } from './limits.ts';
import type { Bind } from './mounts.ts';
import type { Walls } from './walls.ts';

export interface SandboxJob {
  /** Program and arguments, with paths as seen in the sandbox. */
  readonly command: readonly string[];
  readonly stdin: string;
  /** All variables of the program: it inherits none. */
  readonly env: Readonly<Record<string, string>>;
  /** What it may read besides shared libraries. */
  readonly binds: readonly Bind[];
  readonly limits: SandboxLimits;
  /** Takes stdout as it comes, which is then not in the result. `stop` ends the program. */
  readonly onStdout?: ((chunk: Buffer) => 'stop' | undefined) | undefined;
}

export type SandboxEnd =
  | { readonly type: 'exit'; readonly code: number }
  | { readonly type: 'signal'; readonly signal: number }
  | { readonly type: 'limit'; readonly limit: ExceededLimit }
  /** `onStdout` stopped it. */
  | { readonly type: 'stopped' }
  /** The sandbox could not be built, or was ended from outside. */
  | { readonly type: 'lost'; readonly reason: string };

export interface SandboxResult {
  readonly end: SandboxEnd;
  /** Cut at the limit, as stderr. */
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** The largest memory of all processes together, as far as it was seen: small peaks of milliseconds are not. */
  readonly peakMb: number;
}

/** The guard ends a program at its wall limit. Should the guard be slow itself, this ends both. */
const guardSlackMs = 3_000;
/** A pipe may stay open for a moment after the last process has been killed. */
const lastOutputMs = 1_000;

/** Never rejects because of the program; throws what the system says when no process can be started. */
export async function runInSandbox(walls: Walls, job: SandboxJob): Promise<SandboxResult> {
  const cgroup = walls.cgroups === undefined ? undefined : new Cgroup(walls.cgroups, job.limits);
  try {
    const run = new Run(start(walls, job, cgroup), job);
    const result = await run.result;
    if (cgroup === undefined) return result;
    const { outOfMemory, peakMb } = await cgroup.end();
    const peak = { peakMb: Math.max(result.peakMb, peakMb ?? 0) };
    return outOfMemory ? { ...result, ...peak, end: { type: 'limit', limit: 'memory' } } : { ...result, ...peak };
  } catch (error) {
    await cgroup?.end();
    throw error;
  }
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

function start(walls: Walls, { command, binds, limits, env }: SandboxJob, cgroup: Cgroup | undefined): Child {
  const orders = {
    report: 3,
    wall_ms: limits.wallMs,
    cpu_ms: limits.cpuMs,
    memory_kib: limits.memoryMb * 1024,
    tasks: limits.tasks,
    file_kib: limits.diskMb * 1024,
    files: limits.openFiles,
  };
  const enter = cgroup === undefined ? [] : [walls.guard, 'enter', cgroup.entrance];
  const whole = sandboxCommand(walls, { command, binds, diskMb: limits.diskMb, orders }, enter);
  return spawn(whole.command, whole.args, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], env: { ...env } }) as Child;
}

class Run {
  readonly result: Promise<SandboxResult>;
  readonly #child: Child;
  readonly #job: SandboxJob;
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];
  readonly #bytes = { stdout: 0, stderr: 0 };
  readonly #began = performance.now();
  #report = '';
  /** Why this process ended the program. */
  #ended: SandboxEnd | undefined;

  constructor(child: Child, job: SandboxJob) {
    this.#child = child;
    this.#job = job;
    const reports = child.stdio[3] as Readable;
    child.stdout.on('data', (chunk: Buffer) => this.#take('stdout', chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#take('stderr', chunk));
    reports.on('data', (chunk: Buffer) => (this.#report += chunk.toString()));
    child.stdin.on('error', () => undefined); // a program need not read
    child.stdin.end(job.stdin);
    this.result = this.#ends(reports);
  }

  async #ends(reports: Readable): Promise<SandboxResult> {
    const slow = setTimeout(() => this.#end({ type: 'limit', limit: 'wall' }), this.#job.limits.wallMs + guardSlackMs);
    let late: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', () => (late = setTimeout(resolve, lastOutputMs)));
      this.#child.once('close', () => resolve());
    }).finally(() => {
      clearTimeout(slow);
      clearTimeout(late);
      for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr, reports]) stream.destroy();
    });
    return this.#summary();
  }

  #take(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    if (this.#ended !== undefined) return;
    const room = this.#job.limits.outputBytes - this.#bytes[stream];
    const kept = chunk.length <= room ? chunk : chunk.subarray(0, room);
    this.#bytes[stream] += kept.length;
    if (stream === 'stdout' && this.#job.onStdout !== undefined) {
      if (this.#job.onStdout(kept) === 'stop') this.#end({ type: 'stopped' });
    } else (stream === 'stdout' ? this.#stdout : this.#stderr).push(kept);
    if (chunk.length > room) this.#end({ type: 'limit', limit: 'output' });
  }

  /** Ends the sandbox: when bubblewrap ends, the kernel ends process 1 of the sandbox, and with it all others. */
  #end(why: SandboxEnd): void {
    this.#ended ??= why;
    this.#child.kill('SIGKILL');
  }

  #summary(): SandboxResult {
    const numbers = new Map(
      [...this.#report.matchAll(/(\w+)=(\d+)/g)].map(([, name = '', value]) => [name, Number(value)]),
    );
    const own = (performance.now() - this.#began) / 1000;
    const wallMs = numbers.get('wall_ms');
    const stderr = Buffer.concat(this.#stderr).toString();
    return {
      end: this.#ended ?? reportedEnd(this.#report, numbers.get('value') ?? 0, stderr),
      stdout: Buffer.concat(this.#stdout).toString(),
      stderr,
      seconds: wallMs === undefined ? own : wallMs / 1000,
      cpuSeconds: (numbers.get('cpu_ms') ?? 0) / 1000,
      peakMb: (numbers.get('peak_kib') ?? 0) / 1024,
    };
  }
}

function reportedEnd(report: string, value: number, stderr: string): SandboxEnd {
  const end = /^end=(\w+)/.exec(report)?.[1];
  switch (end) {
    case 'exit':
      return { type: 'exit', code: value };
    case 'signal':
      return { type: 'signal', signal: value };
    case 'wall':
    case 'cpu':
    case 'memory':
    case 'tasks':
      return { type: 'limit', limit: end };
    default:
      return { type: 'lost', reason: stderr.trim().split('\n').at(-1) || 'the sandbox was ended from outside' };
  }
}
