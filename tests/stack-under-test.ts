/**
 * Shared by the tests of the stack: a stack in a temporary home whose control and worker processes are small scripts.
 */
import { deepStrictEqual, ok } from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { strangers } from '../infra/stack/adoption.ts';
import { ensureStack, logTail, readStack, stopStack } from '../infra/stack/index.ts';
import type { StackInfo, WorkerPool } from '../infra/stack/index.ts';
import { signalProcess, waitForExit } from '../infra/stack/process.ts';
import type { ProcessIdentity } from '../infra/stack/process.ts';
import { isStackReady } from '../infra/stack/read.ts';
import { poll } from '../infra/poll.ts';
import { temporaryHome } from './servers.ts';
import { patienceMs, patient } from './patience.ts';

export const bounded = patient;

/** Replaces the control and worker processes: reports that it is ready, and exits on SIGTERM. */
const childProgram = `
import { renameSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
const ready = process.env.PETREL_READY_FILE;
console.log('here', process.pid, process.argv.slice(2).join(' '));
const stop = setInterval(() => {}, 1000);
process.on('SIGTERM', () => clearInterval(stop));
writeFileSync(ready + '.tmp', String(process.pid));
renameSync(ready + '.tmp', ready);
`;
/** Starts a helper in a separate process group, which would survive its parent. */
export const parentProgram = `${childProgram}
spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true }).unref();
`;
export const brokenProgram = `console.error('cannot find the model'); process.exit(3);`;

export class StackUnderTest {
  readonly #temporary = temporaryHome();
  readonly home = this.#temporary.home;
  programs = { control: this.#program('control', childProgram), worker: this.#program('worker', childProgram) };

  /** Makes the workers run another script. */
  useWorker(text: string): void {
    this.programs = { ...this.programs, worker: this.#program('other-worker', text) };
  }

  up(workers?: readonly WorkerPool[]): Promise<StackInfo> {
    return ensureStack({ home: this.home, programs: this.programs, ...(workers ? { workers } : {}) });
  }

  /** Stops everything, and checks that no process is left. */
  async remove(): Promise<void> {
    await stopStack(this.home);
    deepStrictEqual(strangers(this.home, []), []);
    this.#temporary.remove();
  }

  /** The stack when all processes run again and `name` is another process than before. */
  async replaced(name: string, before: ProcessIdentity): Promise<StackInfo> {
    const stack = await poll(() => {
      const now = readStack(this.home);
      return now && isStackReady(now) && processOf(now, name).pid !== before.pid ? now : undefined;
    }, bounded);
    if (!stack)
      throw new Error(
        `${name} was not replaced: ${JSON.stringify(readStack(this.home), null, 2)}\n${logTail(this.home, 'supervisor', 40)}`,
      );
    return stack;
  }

  #program(name: string, text: string): string {
    mkdirSync(join(this.home, 'programs'), { recursive: true });
    const path = join(this.home, 'programs', `${name}.mjs`);
    writeFileSync(path, text);
    return path;
  }
}

export function processOf(stack: StackInfo, name: string): ProcessIdentity {
  const child = stack.children.find((one) => one.name === name);
  if (child?.pid === undefined || child.startTime === undefined)
    throw new Error(`${name} does not run: ${JSON.stringify(child)}`);
  return { pid: child.pid, startTime: child.startTime };
}

export const pids = (stack: StackInfo): Record<string, number | undefined> =>
  Object.fromEntries(stack.children.map(({ name, pid }) => [name, pid]));

export const without = (stack: StackInfo, name: string): StackInfo => ({
  ...stack,
  children: stack.children.filter((child) => child.name !== name),
});

/** Sends SIGKILL, and checks that the process was alive and is gone. */
export async function kill(process: ProcessIdentity): Promise<void> {
  ok(signalProcess(process, 'SIGKILL'), `process ${process.pid} was gone already`);
  ok(await waitForExit(process, patienceMs), `process ${process.pid} lives on after SIGKILL`);
}
