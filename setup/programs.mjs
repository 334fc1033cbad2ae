/** Running other programs: quietly, with their output kept for the case that they fail. */

import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { withoutToolSettings } from './environment.mjs';
import { SetupError } from './report.mjs';

const keptOutputBytes = 16 * 1024;

/**
 * Runs a program to its end. Resolves with its output; throws SetupError with the tail of it when the exit code is not
 * 0. `hintOf`: what to do, from the output. A program that cannot be started needs another remedy than one that failed.
 */
export async function runProgram(command, args, { cwd, env, hint, hintOf = () => hint, what = command } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...withoutToolSettings(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (text) => {
    output = (output + text).slice(-keptOutputBytes);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  const [code, signal] = await new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new SetupError(`${what} could not be started: ${error.message}`, startHint(error, command))),
    );
    child.on('close', (...ending) => resolve(ending));
  });
  if (code !== 0) throw new SetupError(`${what} ended with ${signal ?? `exit code ${code}`}`, hintOf(output), output);
  return output;
}

/** ENOENT: it is not there. EACCES: a disk that is mounted with noexec refuses every program. */
function startHint({ code }, command) {
  if (code === 'ENOENT') return `${command} is not there: install it, or see that PATH names its folder`;
  if (code === 'EACCES')
    return `${command} may not be executed: check its mode, and that its disk is not mounted with noexec`;
  if (code === 'EAGAIN') return 'the limit of processes is reached: ulimit -u unlimited';
  return `check ${command}`;
}

/** Absolute path of a program on PATH, or undefined. */
export function findOnPath(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return undefined;
}
