/** Processes of this machine, identified by pid and start time: the system reuses pids, but not the pair. */
import { readFileSync, readdirSync } from 'node:fs';
import { poll } from '../poll.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to its start, from /proc. */
  readonly startTime: string;
}

/** The identity of a living process; undefined when there is none, or only a zombie without other threads. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && { pid, startTime: stat.startTime };
}

export function ownIdentity(): ProcessIdentity {
  const identity = identify(process.pid);
  if (!identity) throw new Error('/proc does not show this process');
  return identity;
}

export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  return readStat(pid)?.startTime === startTime;
}

/** Sends a signal unless the process is gone. Returns whether it existed. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(identity) && sendSignal(identity.pid, signal);
}

/** Sends a signal to the process group that `pid` leads or led. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  sendSignal(-pid, signal);
}

/** Resolves with true when the process is gone, with false if it still exists after `timeoutMs`. */
export async function waitForExit(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  return (await poll(() => !isAlive(identity), { everyMs: 20, timeoutMs })) === true;
}

/** SIGTERM, a wait of up to `graceMs`, then SIGKILL to its whole group. Resolves when the process is gone. */
export async function terminate(identity: ProcessIdentity, graceMs: number): Promise<void> {
  signalProcess(identity, 'SIGTERM');
  if (!(await waitForExit(identity, graceMs)) && isAlive(identity)) {
    signalGroup(identity.pid, 'SIGKILL');
    signalProcess(identity, 'SIGKILL');
    await waitForExit(identity, 5_000);
  }
}

/** The pids above a process, its parent first. */
export function ancestors(pid: number): number[] {
  const parent = readStat(pid)?.parent ?? 0;
  return parent === 0 ? [] : [parent, ...ancestors(parent)];
}

export interface ListedProcess extends ProcessIdentity {
  readonly env: ReadonlyMap<string, string>;
  readonly args: readonly string[];
}

/** This user's processes whose environment holds `name=value`, including descendants. */
export function processesWith(name: string, value: string): ListedProcess[] {
  const listed: ListedProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const env = nulSeparated(readProc(entry, 'environ'));
    if (!env.includes(`${name}=${value}`)) continue;
    const stat = readStat(Number(entry));
    if (stat)
      listed.push({
        pid: Number(entry),
        startTime: stat.startTime,
        env: environment(env),
        args: nulSeparated(readProc(entry, 'cmdline')),
      });
  }
  return listed;
}

function readStat(pid: number): { startTime: string; parent: number } | undefined {
  const text = readProc(String(pid), 'stat');
  // "pid (name, which may contain spaces and brackets) state ppid … starttime …"
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, threads, startTime] = [fields[0], fields[1], fields[17], fields[19]];
  // A zombie with other threads is still ending: they may hold its ports and files a little longer.
  if (startTime === undefined || state === 'X' || (state === 'Z' && threads === '1')) return undefined;
  return { startTime, parent: Number(parent) };
}

/** Empty when the process is gone or belongs to another user. */
function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function nulSeparated(text: string): string[] {
  return text.replace(/\0$/, '').split('\0');
}

function environment(entries: readonly string[]): Map<string, string> {
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}

function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false; // the process is gone
    throw error;
  }
}
