/** Programs of this folder in processes of their own: the addon reads its environment once, and a crash is a result. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { packageRoot } from '../package-root.ts';

export interface ChildResult {
  /** The exit code, or the signal that ended the process. */
  readonly ended: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChildOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Options of Node itself, such as `--expose-gc`. */
  readonly node?: readonly string[];
}

/** Runs a TypeScript program of native/testing from its source until it ends. */
function runChild(program: string, { args = [], env = {}, node = [] }: ChildOptions = {}): ChildResult {
  const stripTypes = join(packageRoot(), 'rewards/host/strip-types.mjs');
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [...node, '--import', stripTypes, join(packageRoot(), 'native/testing', program), ...args],
    { env: { ...process.env, ...env }, encoding: 'utf8', maxBuffer: 1 << 26 },
  );
  return { ended: signal ?? status ?? 'no exit code', stdout, stderr };
}

/** The lines of a program that had to end well; throws with its error output otherwise. */
export function linesOf(program: string, options: ChildOptions = {}): string[] {
  const { ended, stdout, stderr } = runChild(program, options);
  if (ended !== 0)
    throw new Error(`${program} ended with ${ended} after:\n${stdout.slice(-2000)}\n${stderr.slice(-4000)}`);
  return stdout.split('\n').filter((line) => line !== '');
}
