/**
 * The name of a stack in records, so that users know which one drives a run: the machine's name and a short random
 * part.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** The same for all processes of a PETREL_HOME, and after restarts: `laptop-3f9a2c`. Created at the first call. */
export function stackName(home: string): string {
  const file = join(home, 'stack-name');
  return read(file) ?? make(home, file);
}

/** The same as one word of a subject: this machine's instance, see core/wire/worker-identity.ts. */
export const instanceName = (home: string): string => instanceOf(stackName(home));

/** The instance of the machine whose stack has this name. */
export const instanceOf = (stack: string): string => stack.replaceAll(/[^A-Za-z0-9_-]/g, '-');

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The first process that links the file decides the name. A power cut must not lose it, because otherwise the terms of
 * its runs would belong to another stack.
 */
function make(home: string, file: string): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${hostname()}-${randomBytes(3).toString('hex')}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(temporary);
  }
  syncFolder(home);
  return read(file) ?? hostname();
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
