/**
 * A lock in a folder, held for the life of a process. Exactly one process can take over the lock of a dead holder.
 *
 * The folder contains numbered files. The process that wrote the highest number has the lock while it lives. A process
 * takes the lock by creating the next number, which the file system permits once. A release only marks the file and
 * deletes nothing. So a slow contender cannot create a number that was ever used, or a lower one.
 */
import { linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { TerminalError } from '../../core/errors.ts';
import { isAlive, ownIdentity } from './process.ts';
import type { ProcessIdentity } from './process.ts';

const lockFile = z.object({ pid: z.int(), startTime: z.string(), released: z.boolean() });
type LockFile = Readonly<z.infer<typeof lockFile>>;

export interface HeldLock {
  release(): void;
}

/** The lock, or undefined when a living process holds it. */
export function tryLock(folder: string): HeldLock | undefined {
  mkdirSync(folder, { recursive: true });
  for (;;) {
    const last = lastNumber(folder);
    if (holderOf(folder, last)) return undefined;
    const number = last + 1;
    if (!createNumbered(folder, number)) continue; // another process was faster: look again
    forgetBelow(folder, number);
    return { release: () => write(join(folder, String(number)), { ...ownIdentity(), released: true }) };
  }
}

/** The living process that holds the lock. */
export function lockHolder(folder: string): ProcessIdentity | undefined {
  return holderOf(folder, lastNumber(folder));
}

function holderOf(folder: string, number: number): ProcessIdentity | undefined {
  const file = number === 0 ? undefined : read(join(folder, String(number)));
  return file && !file.released && isAlive(file) ? { pid: file.pid, startTime: file.startTime } : undefined;
}

/** The file appears with its full content or not at all: link(2) neither replaces a file nor shows half of one. */
function createNumbered(folder: string, number: number): boolean {
  const temporary = join(folder, `${process.pid}.${number}.new`);
  writeFileSync(temporary, JSON.stringify({ ...ownIdentity(), released: false } satisfies LockFile));
  try {
    linkSync(temporary, join(folder, String(number)));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary);
  }
}

function lastNumber(folder: string): number {
  return Math.max(0, ...numbers(folder));
}

/** Keeps the last few files, so that a listing during a change still sees one of them. */
function forgetBelow(folder: string, number: number): void {
  for (const old of numbers(folder)) if (old < number - 8) rmSync(join(folder, String(old)), { force: true });
}

function numbers(folder: string): number[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function read(path: string): LockFile | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined; // removed, because higher numbers exist
    throw error;
  }
  try {
    return lockFile.parse(JSON.parse(text));
  } catch (cause) {
    // The holder is unknown, so the lock must not be taken.
    throw new TerminalError('DamagedLock', `${path}: it does not say who holds the lock`, {
      where: path,
      hint: 'When no petrel process runs on this home, remove the file',
      cause,
    });
  }
}

function write(path: string, file: LockFile): void {
  writeFileSync(`${path}.tmp`, JSON.stringify(file));
  renameSync(`${path}.tmp`, path);
}
