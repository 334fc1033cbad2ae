/** The programs that build a sandbox on this machine. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import { packageFile } from '../package-file.ts';
import { findCgroupFolder } from './cgroup.ts';
import { noBubblewrap } from './refusal.ts';

export interface Walls {
  /** The program of the Debian package bubblewrap. */
  readonly bwrap: string;
  /** petrel-guard, process 1 of every sandbox (native/guard/guard.c). */
  readonly guard: string;
  /**
   * Does bubblewrap run as root? Then it builds the mounts as root, and the guard gives the program a user that owns
   * nothing. Otherwise it builds them in a user namespace.
   */
  readonly root: boolean;
  /**
   * Is bubblewrap the root of a user namespace that the guard has made? Root of a container without CAP_SYS_ADMIN
   * cannot build mounts otherwise.
   */
  readonly namespace: boolean;
  /** A command that becomes the command after it: it starts bubblewrap. */
  readonly prefix: readonly string[];
  /** Can bubblewrap limit the size of /tmp (since 0.7)? Without it the memory limit does. */
  readonly sizes: boolean;
  /** A folder of cgroup v2 in which sandboxes get cgroups with limits; undefined: the guard alone keeps the limits. */
  readonly cgroups: string | undefined;
}

/** Throws UnfitError `NoSandbox` when bubblewrap is not installed. */
export function findWalls(): Walls {
  const bwrap = findProgram('bwrap');
  if (bwrap === undefined) throw noBubblewrap();
  const guard = packageFile('build', 'native', 'petrel-guard');
  if (!existsSync(guard)) {
    throw new TerminalError('GuardMissing', `the program that guards a sandbox is not built: ${guard} is not there`, {
      hint: 'npm run setup',
    });
  }
  const sizes = spawnSync(bwrap, ['--help'], { encoding: 'utf8' }).stdout?.includes('--size') === true;
  const root = process.getuid?.() === 0;
  return { bwrap, guard, root, namespace: false, prefix: [], sizes, cgroups: findCgroupFolder() };
}

/**
 * The ways in which bubblewrap may be able to build a sandbox here, the best first. Which one works is known only by
 * trial. `bwrap --unshare-user` by root is not among them: its program keeps root's user number outside, and the files
 * of /proc/sys belong to that number, whatever capabilities it lacks.
 */
export function waysOf(walls: Walls): readonly Walls[] {
  return walls.root ? [walls, { ...walls, namespace: true }] : [walls];
}

/** How the sandbox is built, in words: `as root`. */
export function showWay({ root, namespace }: Pick<Walls, 'root' | 'namespace'>): string {
  if (!root) return 'as an ordinary user';
  return namespace ? 'as root of a user namespace (without CAP_SYS_ADMIN)' : 'as root';
}

function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '/usr/bin:/bin').split(delimiter).filter((folder) => folder.startsWith('/'));
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
