/** How a control or worker process tells the supervisor that it is ready. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { ProcessIdentity } from './process.ts';

/** Environment variable with the file's path; absent when a person started the process. */
export const readyFileVariable = 'PETREL_READY_FILE';

/** A process of the stack calls this once, when it polls for work. */
export function announceReady(env: NodeJS.ProcessEnv = process.env): void {
  const path = env[readyFileVariable];
  if (path === undefined) return;
  writeFileSync(`${path}.tmp`, String(process.pid));
  renameSync(`${path}.tmp`, path);
}

/** True when this process announced itself; a file of an earlier process holds another pid. */
export function hasAnnounced(path: string, { pid }: ProcessIdentity): boolean {
  try {
    return readFileSync(path, 'utf8') === String(pid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
