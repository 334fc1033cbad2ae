/**
 * The limits of a shell (`ulimit`) that are too small for set-up and for a stack, each with what to type. They are
 * named before anything fails: what fails later is a library's sentence about WebAssembly, a thread or a socket.
 */

import { readdirSync, readFileSync } from 'node:fs';

/**
 * Least values. Node reserves address space in pieces of 10 GiB for each memory of WebAssembly that it guards by
 * pages, and the engine and Temporal's server reserve more; no process uses it. A stack of one worker has some 150
 * threads.
 */
const addressBytes = 64 * 2 ** 30;
const openFiles = 256;
const freeTasks = 256;

/** `{ name, detail, fix }` for each limit of this process that is too small. */
export function smallLimits(limits = ownLimits(), tasks = tasksOfUser()) {
  const found = [];
  const soft = (name) => limits.get(name) ?? Infinity;
  if (soft('Max address space') < addressBytes)
    found.push({
      name: 'address space',
      detail: `ulimit -v is ${soft('Max address space') / 1024} KiB: Node reserves more address space than that, and does not use it`,
      fix: 'ulimit -v unlimited',
    });
  if (soft('Max open files') < openFiles)
    found.push({
      name: 'open files',
      detail: `ulimit -n is ${soft('Max open files')}, a stack needs ${openFiles}`,
      fix: 'ulimit -n 4096',
    });
  if (soft('Max processes') - tasks < freeTasks)
    found.push({
      name: 'processes',
      detail: `ulimit -u is ${soft('Max processes')}, and this user has ${tasks} processes and threads; a stack needs ${freeTasks} more`,
      fix: 'ulimit -u unlimited',
    });
  return found;
}

/** name → soft limit of this process. */
export function ownLimits(text = readFileSync('/proc/self/limits', 'utf8')) {
  const lines = text.split('\n').slice(1);
  const pairs = lines.map((line) => /^(.+?)\s{2,}(unlimited|\d+)\s/.exec(line)).filter(Boolean);
  return new Map(pairs.map(([, name, value]) => [name, value === 'unlimited' ? Infinity : Number(value)]));
}

/** Processes and threads of this user, which the kernel counts together. It counts none of the superuser's. */
function tasksOfUser() {
  const uid = process.getuid();
  if (uid === 0) return -Infinity;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .reduce((sum, pid) => sum + threadsOf(pid, uid), 0);
}

function threadsOf(pid, uid) {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^Uid:\s+(\d+)/m.exec(text)?.[1]) === uid ? Number(/^Threads:\s+(\d+)/m.exec(text)?.[1]) : 0;
  } catch {
    return 0; // it has just ended
  }
}
