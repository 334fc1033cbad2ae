/**
 * The fault injector: arms points of the code (log/faults), waits until a process stops at one, and then kills,
 * freezes or rolls back the given processes. It identifies processes by pid and start time, and checks the effect.
 */
import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { armedFolder, firedFolder } from '../log/faults/index.ts';
import type { ArmedFault, FiredFault } from '../log/faults/index.ts';
import { lockHolder } from '../infra/stack/lock.ts';
import { identify, isAlive, signalProcess, waitForExit } from '../infra/stack/process.ts';
import type { ProcessIdentity } from '../infra/stack/process.ts';
import { lockFolder, readStackFile, stackFile, stackFolder } from '../infra/stack/state.ts';
import type { ChildState } from '../infra/stack/state.ts';
import { poll } from '../infra/poll.ts';
import { patienceMs } from './patience.ts';

/** A process that is stopped at a point, or was. */
export interface Standing extends FiredFault {
  /** Undefined when it is gone: another fault of the same moment killed it. */
  readonly identity: ProcessIdentity | undefined;
  /** Time at which it reached the point, by the clock of the file system. */
  readonly atMs: number;
}

/** The servers that keep state on disk, with the files of each under PETREL_HOME/stack. */
const stateFiles = { nats: ['nats'], temporal: ['temporal.db', 'temporal.db-wal', 'temporal.db-shm'] } as const;
export type StatefulServer = keyof typeof stateFiles;

export class Injector {
  readonly #home: string;
  readonly #folder: string;
  readonly #watcher: FSWatcher;
  readonly #changed = new Set<() => void>();

  /** `folder` must be the value of PETREL_FAULTS when the stack of `home` was started. */
  constructor(home: string, folder: string) {
    this.#home = home;
    this.#folder = folder;
    for (const place of [armedFolder(folder), firedFolder(folder)]) mkdirSync(place, { recursive: true });
    this.#watcher = watch(firedFolder(folder), () => this.#changed.forEach((look) => look()));
  }

  close(): void {
    this.#watcher.close();
  }

  /** The fault applies to every process that reaches the point from now on. */
  arm(fault: ArmedFault): void {
    const path = join(armedFolder(this.#folder), `${fault.id}.json`);
    writeFileSync(`${path}.new`, JSON.stringify(fault));
    renameSync(`${path}.new`, path);
  }

  disarm(id: string): void {
    rmSync(join(armedFolder(this.#folder), `${id}.json`), { force: true });
  }

  /** Disarms all faults and resumes all stopped processes. */
  disarmAll(): void {
    for (const name of readdirSync(armedFolder(this.#folder))) this.disarm(name.replace(/\.json$/, ''));
    for (const name of readdirSync(firedFolder(this.#folder))) {
      const fired = this.#read(name.replace(/\.json$/, ''));
      if (fired?.identity !== undefined) signalProcess(fired.identity, 'SIGCONT');
    }
  }

  /** Resolves when a process has reached the armed point. Rejects when `signal` is aborted before that. */
  fired(id: string, signal: AbortSignal): Promise<Standing> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#changed.delete(look);
        signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        end();
        reject(signal.reason);
      };
      const look = (): void => {
        const fired = this.#read(id);
        if (fired === undefined) return;
        end();
        resolve(fired);
      };
      this.#changed.add(look);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      else look();
    });
  }

  /**
   * Does what `fired` does, but resolves only when the kernel has stopped the process, so that it executes nothing
   * more.
   */
  async stands(id: string, signal: AbortSignal): Promise<Standing> {
    const fired = await this.fired(id, signal);
    const { identity } = fired;
    if (identity === undefined) return fired;
    const stopped = await poll(() => !isAlive(identity) || isStopped(identity.pid), {
      everyMs: 1,
      timeoutMs: patienceMs,
    });
    if (stopped !== true) throw new Error(`${fired.process} came to ${fired.point} and does not stand there`);
    return fired;
  }

  /** The entry of a process in `stack.json`. */
  child(name: string): ChildState | undefined {
    return readStackFile(stackFile(this.#home))?.children.find((child) => child.name === name);
  }

  /** The living process of this name; it may be `supervisor`. */
  process(name: string): ProcessIdentity | undefined {
    if (name === 'supervisor') return lockHolder(lockFolder(this.#home));
    const { pid, startTime } = this.child(name) ?? {};
    return pid !== undefined && startTime !== undefined && isAlive({ pid, startTime }) ? { pid, startTime } : undefined;
  }

  /** Every living process of the stack in `stack.json`, except the supervisor. The supervisor may be dead. */
  #living(): { readonly name: string; readonly identity: ProcessIdentity }[] {
    return (readStackFile(stackFile(this.#home))?.children ?? []).flatMap(({ name }) => {
      const identity = this.process(name);
      return identity === undefined ? [] : [{ name, identity }];
    });
  }

  /** Sends SIGKILL to all of them at once, and checks that each was alive and is gone. */
  async kill(victims: readonly { readonly name: string; readonly identity: ProcessIdentity }[]): Promise<void> {
    const missed = victims.filter(({ identity }) => !signalProcess(identity, 'SIGKILL'));
    if (missed.length > 0)
      throw new Error(`was gone before it could be killed: ${missed.map(({ name }) => name).join(', ')}`);
    for (const { name, identity } of victims) {
      if (!(await waitForExit(identity, patienceMs)))
        throw new Error(`${name} (${identity.pid}) lives on after SIGKILL`);
    }
  }

  /** The supervisor is stopped first and killed with the others, so that it starts no process again. */
  async killEverything(): Promise<void> {
    const supervisor = await this.victim('supervisor');
    this.freeze(supervisor.identity);
    await this.kill([...this.#living(), supervisor]);
  }

  /** A living process by its name in `stack.json`. Waits for a server that is being restarted. */
  async victim(name: string): Promise<{ readonly name: string; readonly identity: ProcessIdentity }> {
    const identity = await poll(() => this.process(name), { everyMs: 5, timeoutMs: patienceMs });
    if (identity === undefined) throw new Error(`there is no living process ${name} to be killed`);
    return { name, identity };
  }

  freeze(identity: ProcessIdentity): void {
    if (!signalProcess(identity, 'SIGSTOP')) throw new Error(`process ${identity.pid} is gone, it cannot be stopped`);
  }

  /** Resumes a stopped process. Returns whether it exists. */
  thaw(identity: ProcessIdentity): boolean {
    return signalProcess(identity, 'SIGCONT');
  }

  /** Copies a server's files while the server is stopped: the state of the disk if it were cut off at this moment. */
  async copyState(server: StatefulServer, to: string): Promise<void> {
    const { identity } = await this.victim(server);
    this.freeze(identity);
    try {
      mkdirSync(to, { recursive: true });
      for (const file of stateFiles[server]) {
        if (existsSync(join(stackFolder(this.#home), file)))
          cpSync(join(stackFolder(this.#home), file), join(to, file), { recursive: true });
      }
    } finally {
      this.thaw(identity);
    }
  }

  /**
   * Kills a server and starts it with other files: the older copy in `from`, or none. The supervisor is stopped during
   * this, so that it does not start the server in between.
   */
  async replaceState(server: StatefulServer, from: string | undefined): Promise<void> {
    const supervisor = (await this.victim('supervisor')).identity;
    this.freeze(supervisor);
    try {
      await this.kill([await this.victim(server)]);
      for (const file of stateFiles[server]) {
        rmSync(join(stackFolder(this.#home), file), { recursive: true, force: true });
        if (from !== undefined && existsSync(join(from, file)))
          cpSync(join(from, file), join(stackFolder(this.#home), file), { recursive: true });
      }
    } finally {
      this.thaw(supervisor);
    }
  }

  /** Undefined while the file is missing or incomplete: then another event follows. */
  #read(id: string): Standing | undefined {
    const path = join(firedFolder(this.#folder), `${id}.json`);
    try {
      const fired = JSON.parse(readFileSync(path, 'utf8')) as FiredFault;
      return { ...fired, identity: identify(fired.pid), atMs: statSync(path).mtimeMs };
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }
}

function isStopped(pid: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).startsWith('T');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH')
      return false;
    throw error;
  }
}
