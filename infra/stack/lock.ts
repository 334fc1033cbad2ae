/**
 * A lock held for the life of a process, in a folder; a dead holder's lock can be taken over, by exactly one.
 *
 * The folder holds numbered files; whoever wrote the highest number has the lock while he lives. Taking it means creating
 * the next number, which the file system grants once. Nothing is unlinked on the way out, a released number is only marked:
 * so a slow contender can never create a number that is below, or the same as, one that was ever used.
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
    if (!createNumbered(folder, number)) continue; // another was quicker: look again
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

/** The file appears with its content, or not at all: link(2) neither replaces nor shows half of it. */
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

/** Keeps a few, so that a listing made while the folder changes still meets one of them. */
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
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined; // long superseded
    throw error;
  }
  try {
    return lockFile.parse(JSON.parse(text));
  } catch (cause) {
    // Who holds it is not known: nobody may take it for free.
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
