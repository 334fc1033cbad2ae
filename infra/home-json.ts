/**
 * Small JSON files in PETREL_HOME on which the stack decides what it may run. A missing file is an answer; a file that
 * cannot be read at the moment (too many open files, a disk error) is not: a run would fail as unknown.
 */
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { RetryableError } from '../core/errors.ts';

/** Undefined when the file is missing or is not JSON. Throws RetryableError `HomeUnreadable` when it cannot be read. */
export function readHomeJson(path: string): unknown {
  const text = unlessMissing(path, () => readFileSync(path, 'utf8'));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a user may have edited it
  }
}

/** Names of the JSON files of a folder; none when it is missing. Throws as `readHomeJson`. */
export function homeJsonNames(folder: string): string[] {
  return (unlessMissing(folder, () => readdirSync(folder)) ?? []).filter((name) => name.endsWith('.json'));
}

/** Replaces the file as a whole, and after a power cut it is the old one or the new one. */
export function writeHomeJson(path: string, value: unknown): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  const handle = openSync(temporary, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, path);
}

function unlessMissing<T>(path: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new RetryableError('HomeUnreadable', `${path}: expected a readable file, got ${String(error)}`, {
      where: path,
      hint: 'make it readable; what needs it is tried again',
      cause: error,
    });
  }
}
