/** One log file per process under PETREL_HOME/stack/logs. */
import { existsSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { stackFolder } from './state.ts';

const rotateBytes = 8 * 1024 * 1024;

export const logFile = (home: string, child: string): string => join(stackFolder(home), 'logs', `${child}.log`);

/** Opens a process's log for appending; a long one is first renamed to `.1`. The caller closes the descriptor. */
export function openLog(home: string, child: string): number {
  const path = logFile(home, child);
  mkdirSync(join(stackFolder(home), 'logs'), { recursive: true });
  if (existsSync(path) && statSync(path).size > rotateBytes) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/** The last lines of a process's log, for messages about its death. */
export function logTail(home: string, child: string, lines = 12): string {
  const path = logFile(home, child);
  if (!existsSync(path)) return '';
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
}
