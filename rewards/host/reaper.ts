/**
 * Runs a program under `petrel-reaper` (native/reaper/reaper.c), which kills all descendants of the program, whatever
 * they did to escape. When the reaper has ended, none of them is left.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import { TerminalError } from '../../core/errors.ts';
import { packageFile } from '../package-file.ts';

/** How the program ended, as Node reports it. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Memory of all descendants together. */
export interface TreeUsage {
  readonly mib: number;
  readonly processes: number;
}

/**
 * `r`: resident; pages that processes share are counted for each. `p`: proportional; they are counted once, but reading
 * takes longer.
 */
export type MemoryKind = 'r' | 'p';

/**
 * An unrelated process may hold a pipe open for ever, so output that is not read within this time after the end is
 * dropped.
 */
const lastOutputMs = 200;

export class ReapedProgram {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when no descendant is left and the output has been read. Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  readonly #control: Duplex;
  readonly #answers: ((usage: TreeUsage | undefined) => void)[] = [];

  /** @throws TerminalError `ReaperMissing` when the reaper is not built. */
  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    // A new session, so that Ctrl-C reaches only the parent.
    const child = spawn(reaperPath(), [command, ...args], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
      env,
    }) as ChildProcessByStdio<Writable, Readable, Readable>;
    this.stdin = child.stdin;
    this.stdout = child.stdout;
    this.stderr = child.stderr;
    this.#control = child.stdio[3] as Duplex;
    this.stdin.on('error', () => undefined); // The process has ended, and its exit status gives the reason.
    this.#control.on('error', () => undefined);
    this.#control.on('data', (chunk: Buffer) => this.#answer(chunk.toString()));
    this.ended = new Promise((resolve) => {
      child.once('error', () => resolve({ code: null, signal: null }));
      child.once('exit', (code, signal) => {
        for (const waiting of this.#answers.splice(0)) waiting(undefined);
        const done = () => {
          clearTimeout(limit);
          for (const stream of [this.stdin, this.stdout, this.stderr, this.#control]) stream.destroy();
          resolve({ code, signal });
        };
        const limit = setTimeout(done, lastOutputMs);
        child.once('close', done);
      });
    });
  }

  /** undefined when it has ended. */
  usage(kind: MemoryKind): Promise<TreeUsage | undefined> {
    if (this.#control.destroyed) return Promise.resolve(undefined);
    this.#control.write(kind);
    return new Promise((resolve) => this.#answers.push(resolve));
  }

  /** Ends the program and all its descendants; `ended` resolves when that is done. */
  kill(): void {
    this.#control.destroy();
  }

  /** A reply is one short line, written in one piece. */
  #answer(text: string): void {
    for (const line of text.trim().split('\n')) {
      const [kib = NaN, processes = NaN] = line.split(' ').map(Number);
      this.#answers.shift()?.({ mib: kib / 1024, processes });
    }
  }
}

/** Set-up builds it, next to the engine. */
/** `root`: of the package that is built; default: this one. */
export function reaperPath(root = packageFile()): string {
  const path = join(root, 'build/native/petrel-reaper');
  if (!existsSync(path)) {
    throw new TerminalError('ReaperMissing', `the program that runs scorers is not built: ${path} is not there`, {
      hint: 'npm run setup',
    });
  }
  return path;
}
