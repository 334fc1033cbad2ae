/** How a control or worker process tells the supervisor that it serves. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { ProcessIdentity } from './process.ts';

/** Environment variable that names the file; absent when the process was started by hand. */
export const readyFileVariable = 'PETREL_READY_FILE';

/** Called once by a process of the stack when it polls for work. */
export function announceReady(env: NodeJS.ProcessEnv = process.env): void {
  const path = env[readyFileVariable];
  if (path === undefined) return;
  writeFileSync(`${path}.tmp`, String(process.pid));
  renameSync(`${path}.tmp`, path);
}

/** True when this very process announced itself; a file left by its predecessor holds another pid. */
export function hasAnnounced(path: string, { pid }: ProcessIdentity): boolean {
  try {
    return readFileSync(path, 'utf8') === String(pid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
