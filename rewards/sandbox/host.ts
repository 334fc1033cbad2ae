/** A scorer's host process behind the walls of a sandbox (`reward.sandbox`). Its protocol goes over inherited pipes. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { UnfitError } from '../../core/errors.ts';
import { packageFile } from '../package-file.ts';
import { sandboxCommand } from './command.ts';
import type { Bind } from './mounts.ts';
import { openWalls } from './open-walls.ts';
import { findPython } from './python.ts';

export interface HostProgram {
  readonly command: string;
  readonly args: readonly string[];
}

export interface SandboxedHost extends HostProgram {
  /** Variables that replace those from outside, or remove them. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Size of /tmp, which the host does not count as memory of the scorer. */
const diskMb = 64;
const openFiles = 1024;

const environment = {
  HOME: '/tmp',
  TMPDIR: '/tmp',
  USER: 'sandbox',
  LOGNAME: 'sandbox',
  // There is no network, and these files are not there.
  NODE_EXTRA_CA_CERTS: undefined,
  SSL_CERT_FILE: undefined,
  SSL_CERT_DIR: undefined,
  REQUESTS_CA_BUNDLE: undefined,
  CURL_CA_BUNDLE: undefined,
};

/** `files`: the user's, files and folders. Throws UnfitError `NoSandbox` or `NoPython`. */
export function sandboxedHost({ command, args }: HostProgram, files: readonly string[]): SandboxedHost {
  const walls = openWalls();
  if (!walls.sizes) {
    throw new UnfitError('NoSandbox', 'reward.sandbox needs bubblewrap 0.7 or newer, which limits the size of /tmp', {
      hint: 'bwrap --version shows the installed one; a newer Debian or Ubuntu has it',
    });
  }
  const runtime = command === process.execPath ? nodeRuntime() : pythonRuntime();
  const sandboxed = sandboxCommand(walls, {
    command: [runtime.program, ...args],
    binds: [...runtime.binds, ...petrelFiles(), ...files.map((path) => ({ path }))],
    diskMb,
    orders: { file_kib: diskMb * 1024, files: openFiles },
  });
  return { ...sandboxed, env: environment };
}

function nodeRuntime(): { program: string; binds: readonly Bind[] } {
  return { program: process.execPath, binds: [{ path: process.execPath }, ...typeRemover()] };
}

/** What removes the types of TypeScript modules, with its native library. */
function typeRemover(): Bind[] {
  const ofPackage = createRequire(packageFile('package.json'));
  return [{ path: dirname(dirname(ofPackage.resolve('@swc/core/package.json'))) }];
}

/** A scorer may import what the environment offers, so its added folders are there, too. */
function pythonRuntime(): { program: string; binds: readonly Bind[] } {
  const { program, binds, addedPaths } = findPython();
  return { program, binds: [...binds, ...addedPaths.map((path) => ({ path }))] };
}

function petrelFiles(): Bind[] {
  return ['package.json', 'dist', 'core', 'rewards']
    .map((name) => packageFile(name))
    .filter((path) => existsSync(path))
    .map((path) => ({ path }));
}
