/** Whether this machine has room for new work: where the store lies, when that is a folder, in petrel's home and for NATS. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { PauseError } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { natsFolder } from './state.ts';
import { ballastBytes, keepBallast, releaseBallast } from '../store/ballast.ts';
import { holdsWork } from '../store/folder-root.ts';
import { admitWork, freeBytes, fullPlace } from '../store/free-space.ts';

interface Place {
  readonly what: string;
  readonly path: string;
  /** Room is kept there for the records that say that it is full. */
  readonly ballast: boolean;
}

function places(stores: readonly Store[], home: string): Place[] {
  const folders = stores.flatMap((store) => store.localPath('runs') ?? []).map(dirname);
  return [
    ...folders.filter(existsSync).map((path) => ({ what: 'the store', path, ballast: holdsWork(path) })),
    { what: "petrel's home", path: home, ballast: true },
    ...[natsFolder(home)].filter(existsSync).map((path) => ({ what: 'the NATS store', path, ballast: false })),
  ];
}

/** Throws PauseError `DiskFull`. Where there is room again, the ballast that a full disk took is put back. */
export async function admitHere(store: Store, home: string): Promise<void> {
  for (const { what, path, ballast } of places([store], home)) {
    await admitWork(what, path);
    if (ballast) await keepBallast(path);
  }
}

/** What of these and of petrel's home is too full for new work. */
export async function fullPlaces(stores: readonly Store[], home: string): Promise<PauseError[]> {
  const found = await Promise.all(places(stores, home).map(({ what, path }) => fullPlace(what, path)));
  return found.flatMap((full) => full ?? []);
}

/**
 * Gives the home's ballast back when the disk is all but full: the servers there write by themselves, and cannot tell a pause
 * to be written down otherwise. Ends with the process.
 */
export function watchRoom(home: string, log: (line: string) => void, everyMs = 1_000): void {
  const look = async () => {
    if ((await freeBytes(home)) >= ballastBytes / 2 || !(await releaseBallast(home))) return;
    log(`${home} is full: ${ballastBytes / 2 ** 20} MiB that were kept for this are given back`);
  };
  setInterval(
    () => void look().catch((error: unknown) => log(`looking for room in ${home}: ${String(error)}`)),
    everyMs,
  ).unref();
}
