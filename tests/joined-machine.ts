/** A machine that joins a stack over TLS on loopback: a process group with a home of its own. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { poll } from '../infra/poll.ts';
import { patienceMs } from './patience.ts';

export interface JoinedMachine {
  readonly process: ChildProcess;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  /** Everything that it has printed. */
  said(): string;
  /** Ends all its processes at once. */
  kill(): Promise<void>;
}

export interface MachineOptions {
  readonly home: string;
  readonly words: readonly string[];
  /** Default: that of the tests. */
  readonly PATH?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs Node with these words. The machine has no variable of the tests' environment but the PATH. */
export function startMachine({ home, words, PATH = process.env['PATH'], env }: MachineOptions): JoinedMachine {
  const child = spawn(process.execPath, words, {
    cwd: home,
    env: { PATH, HOME: home, NO_COLOR: '1', ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => void (text += part));
  return {
    process: child,
    ended: once(child, 'close').then(([code]) => code as number | null),
    said: () => text,
    kill: () => killGroup(child),
  };
}

async function killGroup({ pid, exitCode, signalCode }: ChildProcess): Promise<void> {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  process.kill(-pid, 'SIGKILL');
  await poll(() => !isThere(pid), { everyMs: 20, timeoutMs: patienceMs });
}

/** Has the group of processes any? */
export function isThere(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}
