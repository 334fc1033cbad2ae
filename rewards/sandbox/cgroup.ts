/**
 * A cgroup (v2) for one sandbox: the kernel keeps its limits of memory and of processes, also for memory that belongs
 * to no process. Used where a folder with both controllers is writable: for root on most systems, and for a user whose
 * session manager delegates a folder. Elsewhere the guard alone keeps the limits.
 */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxLimits } from './limits.ts';

/** The guard and two processes of bubblewrap. */
const ownTasks = 3;
const ownBytes = 8 * 2 ** 20;
/** How long the kernel may take to remove the last process of a cgroup. */
const removalTries = 100;

export interface CgroupUse {
  /** Has the kernel ended processes because of the memory limit? */
  readonly outOfMemory: boolean;
  /** undefined on kernels before 5.19. */
  readonly peakMb: number | undefined;
}

/** The nearest folder above this process in which cgroups with both limits can be made. */
export function findCgroupFolder(): string | undefined {
  try {
    const mount = / (\/\S+) \S+ - cgroup2 /.exec(mountOf(readFileSync('/proc/self/mountinfo', 'utf8')))?.[1];
    const own = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    if (mount === undefined || own === undefined) return undefined;
    return foldersUp(join(mount, own), mount).find(takesSandboxes);
  } catch {
    return undefined; // without /proc, or with an older kernel
  }
}

function mountOf(mounts: string): string {
  return mounts.split('\n').find((line) => line.includes(' - cgroup2 ')) ?? '';
}

/** The folders from `folder` up to the mount point. */
function foldersUp(folder: string, mount: string): string[] {
  if (!folder.startsWith(mount)) return [mount];
  return folder === mount || folder === `${mount}/` ? [mount] : [folder, ...foldersUp(dirname(folder), mount)];
}

function takesSandboxes(folder: string): boolean {
  try {
    const controllers = readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8').split(/\s+/);
    if (!controllers.includes('memory') || !controllers.includes('pids')) return false;
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK);
    const trial = join(folder, newName());
    mkdirSync(trial);
    rmdirSync(trial);
    return true;
  } catch {
    return false;
  }
}

export class Cgroup {
  readonly #folder: string;

  /** Throws the system's error when it cannot be made. */
  constructor(parent: string, limits: Pick<SandboxLimits, 'memoryMb' | 'tasks'>) {
    this.#folder = join(parent, newName());
    mkdirSync(this.#folder);
    this.#set('memory.max', limits.memoryMb * 2 ** 20 + ownBytes);
    this.#set('memory.swap.max', 0);
    this.#set('memory.oom.group', 1);
    this.#set('pids.max', limits.tasks + ownTasks);
  }

  /** A process that writes 0 to this file joins. */
  get entrance(): string {
    return join(this.#folder, 'cgroup.procs');
  }

  /** Ends what is left in it, and removes it. */
  async end(): Promise<CgroupUse> {
    const use = {
      outOfMemory: /^oom_kill [1-9]/m.test(this.#get('memory.events') ?? ''),
      peakMb: inMb(this.#get('memory.peak')),
    };
    this.#set('cgroup.kill', 1);
    for (let tries = 0; tries < removalTries && !this.#remove(); tries++) await sleep(10);
    return use;
  }

  /** Files that this kernel does not have are left out. */
  #set(name: string, value: number): void {
    const path = join(this.#folder, name);
    if (existsSync(path)) writeFileSync(path, String(value));
  }

  #get(name: string): string | undefined {
    const path = join(this.#folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  #remove(): boolean {
    try {
      rmdirSync(this.#folder);
      return true;
    } catch {
      return false; // a process is still ending
    }
  }
}

const newName = () => `petrel-sandbox-${randomBytes(8).toString('hex')}`;

const inMb = (bytes: string | undefined) => (bytes === undefined ? undefined : Number(bytes) / 2 ** 20);
