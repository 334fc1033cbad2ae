/** What a sandbox contains: read-only binds of files and folders from outside, and small file systems of its own. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';

/** A file or folder from outside, seen at `at`, or at its own path and at the path that its links lead to. */
export interface Bind {
  readonly path: string;
  readonly at?: string | undefined;
}

/** Shared libraries, the loader's cache, and links by which Debian finds libraries. No programs, no configuration. */
const system = [
  '/lib',
  '/lib64',
  '/usr/lib',
  '/usr/lib64',
  '/usr/local/lib',
  '/usr/share/zoneinfo',
  '/etc/ld.so.cache',
  '/etc/alternatives',
];

/**
 * Changes to bubblewrap's /dev. A shared mapping of /dev/zero is memory that belongs to no process; /dev/full gives the
 * same zeros and cannot be mapped. Terminals (/dev/ptmx) are a store of the whole machine.
 */
const devices = [
  ...['--dev-bind', '/dev/full', '/dev/zero'],
  ...['--perms', '0755', '--tmpfs', '/dev/pts', '--remount-ro', '/dev/pts'],
];

/**
 * Arguments of bubblewrap. Paths that do not exist are left out. `diskMb`: size of /tmp, and of /dev/shm; undefined
 * where bubblewrap cannot limit it.
 */
export function mountArguments(binds: readonly Bind[], diskMb: number | undefined): string[] {
  const size = diskMb === undefined ? [] : ['--size', String(diskMb * 2 ** 20)];
  const own = (place: string) => [...size, '--perms', '1777', '--tmpfs', place];
  const sources = sourcesByPlace([...system.map((path) => ({ path })), ...binds]);
  const isBelowOther = (place: string) => parentsOf(place).some((folder) => sources.has(folder));
  // Parents first: a later mount hides what was mounted below it before.
  const places = [...sources.keys()].sort().filter((place) => !isBelowOther(place));
  const folders = new Set(places.flatMap(parentsOf));
  return [
    ...['--proc', '/proc', '--dev', '/dev', ...devices, ...own('/dev/shm'), ...own('/tmp')],
    // bubblewrap would make these folders for its own user only.
    ...[...folders].sort().flatMap((folder) => ['--perms', '0755', '--dir', folder]),
    ...places.flatMap((place) => ['--ro-bind', sources.get(place) ?? place, place]),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
  ];
}

/** The real path that each place shows. */
function sourcesByPlace(binds: readonly Bind[]): Map<string, string> {
  const existing = binds.filter(({ path }) => existsSync(path));
  return new Map(
    existing.flatMap(({ path, at }) => {
      const source = realpathSync(path);
      return at === undefined ? [[path, source] as const, [source, source] as const] : [[at, source] as const];
    }),
  );
}

/** The folders above, from the nearest on, without those that every sandbox has. */
function parentsOf(place: string): string[] {
  const folder = dirname(place);
  return ['/', '/tmp', '/dev', '/dev/shm'].includes(folder) ? [] : [folder, ...parentsOf(folder)];
}
