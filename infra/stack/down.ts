/** `petrel down`: stops the stack in order, whatever is left of it. */
import { rmSync } from 'node:fs';
import { poll } from '../poll.ts';
import { stopProcesses, strangers } from './adoption.ts';
import { lockHolder, tryLock } from './lock.ts';
import { signalProcess, terminate } from './process.ts';
import { lockFolder, readStackFile, stackFile } from './state.ts';

/** Sum of the grace periods of the kinds, which are stopped one after the other, with a margin. */
const supervisorGraceMs = 50_000;

/**
 * Resolves when no process of the stack is left, with the names of the stopped ones. Runs continue after the next
 * start.
 */
export async function stopStack(home: string): Promise<{ stopped: string[] }> {
  const running = readStackFile(stackFile(home))?.children.filter(({ pid }) => pid !== undefined) ?? [];
  const supervisor = lockHolder(lockFolder(home));
  if (supervisor) await terminate(supervisor, supervisorGraceMs);
  const left = await endWhatIsLeft(home);
  return { stopped: [...new Set([...(supervisor ? running.map(({ name }) => name) : []), ...left])] };
}

/** Holds the lock during the stop, so that no supervisor starts processes. */
async function endWhatIsLeft(home: string): Promise<string[]> {
  if (strangers(home, []).length === 0 && !readStackFile(stackFile(home))) return [];
  const lock = await poll(
    () => {
      const taken = tryLock(lockFolder(home));
      if (!taken) signalHolder(home);
      return taken;
    },
    {
      everyMs: 50,
      timeoutMs: supervisorGraceMs,
    },
  );
  try {
    const names = await stopProcesses(strangers(home, []));
    rmSync(stackFile(home), { force: true });
    return names;
  } finally {
    lock?.release();
  }
}

/** The control process may have started a new supervisor during the stop. */
function signalHolder(home: string): void {
  const holder = lockHolder(lockFolder(home));
  if (holder) signalProcess(holder, 'SIGTERM');
}
