/** Runs a program of an engine's environment. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { TerminalError } from '../../core/errors.ts';
import { processEnvironment } from '../../infra/environment.ts';
import { reaperPath } from '../../rewards/host/reaper.ts';

export interface ProgramOptions {
  /** Gets each line when it comes. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** Folder of the package that is built. Default: this one. */
  readonly root?: string | undefined;
  /** Aborting ends the program, which then has failed. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The lines of standard output. When this process ends, the program and what it has started end, too. Throws
 * TerminalError `EngineFailed` with the last line when the program fails.
 */
export async function linesOf(
  program: string,
  args: string[],
  what: string,
  { onLine, root, signal }: ProgramOptions = {},
): Promise<string[]> {
  const child = spawn(reaperPath(root), [program, ...args], {
    env: processEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    ...(signal !== undefined && { signal }),
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
