/** Lets one process at a time work in a folder. The lock of a dead process can be taken over. */
import { open, readFile, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs `work` while holding `path`, a file with the owner's process id. */
export async function withLock<T>(path: string, work: () => Promise<T>, pollMs = 200): Promise<T> {
  while (!(await take(path))) {
    if (!(await ownerLives(path))) await rm(path, { force: true });
    else await sleep(pollMs);
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function take(path: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx');
    await handle.writeFile(String(process.pid));
    await handle.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function ownerLives(path: string): Promise<boolean> {
  const owner = Number(await readFile(path, 'utf8').catch(() => ''));
  if (!Number.isInteger(owner) || owner <= 0) {
    // Just created and not written yet, or left by a crash in between: wait a moment.
    await sleep(1000);
    return Number(await readFile(path, 'utf8').catch(() => '')) > 0;
  }
  try {
    process.kill(owner, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
