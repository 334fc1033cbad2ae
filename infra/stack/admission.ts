/** Whether the disks have space for new work: the store's, when the store is a folder, petrel's home, and NATS's. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { PauseError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { natsFolder } from './state.ts';
import { ballastBytes, keepBallast, releaseBallast } from '../store/ballast.ts';
import { holdsWork } from '../store/folder-root.ts';
import { admitWork, freeBytes, fullPlace } from '../../log/objects/free-space.ts';

interface Place {
  readonly what: string;
  readonly path: string;
  /** Folders that hold a ballast file (ballast.ts), for the records which report a full disk. */
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

/** Throws PauseError `DiskFull`. When there is space again, it recreates ballast files that were deleted. */
export async function admitHere(store: Store, home: string): Promise<void> {
  for (const { what, path, ballast } of places([store], home)) {
    await admitWork(what, path);
    if (ballast) await keepBallast(path);
  }
}

/** Which of these disks and petrel's home are too full for new work. */
export async function fullPlaces(stores: readonly Store[], home: string): Promise<PauseError[]> {
  const found = await Promise.all(places(stores, home).map(({ what, path }) => fullPlace(what, path)));
  return found.flatMap((full) => full ?? []);
}

/**
 * Deletes the home's ballast file when the disk is almost full. Without that space the servers in the home could not
 * even record the pause of a run. Runs until the process ends.
 */
export function watchRoom(home: string, log: (line: string) => void, everyMs = 1_000): void {
  const look = async () => {
    if ((await freeBytes(home)) >= ballastBytes / 2 || !(await releaseBallast(home))) return;
    log(`${home} is full: ${ballastBytes / 2 ** 20} MiB that were reserved for this case are freed`);
  };
  setInterval(
    () => void look().catch((error: unknown) => log(`checking the free space of ${home}: ${String(error)}`)),
    everyMs,
  ).unref();
}
