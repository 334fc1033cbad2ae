/** Runs a program of an engine's environment. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { TerminalError } from '../../core/errors.ts';
import { processEnvironment } from '../../infra/environment.ts';
import { reaperPath } from '../../rewards/host/reaper.ts';

/**
 * The lines of standard output. `onLine` gets each line when it comes. When this process ends, the program and what it
 * has started end, too. Throws TerminalError `EngineFailed` with the last line when the program fails.
 */
export async function linesOf(
  program: string,
  args: string[],
  what: string,
  onLine?: (line: string) => void,
): Promise<string[]> {
  const child = spawn(reaperPath(), [program, ...args], {
    env: processEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const [out, all]: [string[], string[]] = [[], []];
  for (const stream of [child.stdout as Readable, child.stderr as Readable])
    createInterface({ input: stream }).on('line', (line) => {
      if (stream === child.stdout) out.push(line);
      all.push(line);
      onLine?.(line);
    });
  const how = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : (signal ?? `exit code ${code}`)));
  });
  if (how === undefined) return out;
  const last = all.findLast((line) => line.trim() !== '') ?? 'it printed nothing';
  throw new TerminalError('EngineFailed', `${what} failed (${how}): ${last}`);
}
