/** What a stack is called in records, so that people know which one drives a run: its machine and a word of its home. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** The same for all processes of a PETREL_HOME, and after restarts: `laptop-3f9a2c`. Made at the first asking. */
export function stackName(home: string): string {
  const file = join(home, 'stack-name');
  return read(file) ?? make(home, file);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The process that links first names it. A power cut must not take the name away: the terms of its runs would be another stack's. */
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
