/**
 * Runs a program under `petrel-reaper` (native/reaper): when the program or this process ends, however it ends, so does
 * every process that the program has started, also one that left its session and its parent, as a stack does. So they
 * do when the reaper itself is killed.
 */
import { spawn } from 'node:child_process';
import { reaperPath } from '../../rewards/host/reaper.ts';

/**
 * Resolves with the exit code of the program when nothing that it started is left. Its output is this process's own.
 */
export function runReaped(command: readonly string[]): Promise<number> {
  // The reaper holds the other end of this pipe. It ends everything when the pipe closes, and nobody need close it.
  const child = spawn(reaperPath(), ['--guarded', ...command], { stdio: ['inherit', 'inherit', 'inherit', 'pipe'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
