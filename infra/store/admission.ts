/** Whether this machine has room for new work: where the store lies, when that is a folder, and in petrel's home. */
import { dirname } from 'node:path';
import type { Store } from '../../core/ports.ts';
import { ballastBytes, keepBallast, releaseBallast } from './ballast.ts';
import { admitWork, freeBytes } from './free-space.ts';

/** Throws PauseError `DiskFull`. Where there is room again, the ballast that a full disk took is put back. */
export async function admitHere(store: Store, home: string): Promise<void> {
  const folder = store.localPath('runs');
  const places = [...(folder === undefined ? [] : [{ what: 'the store', path: dirname(folder) }]), { what: "petrel's home", path: home }];
  for (const { what, path } of places) {
    await admitWork(what, path);
    await keepBallast(path);
  }
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
  setInterval(() => void look().catch((error: unknown) => log(`looking for room in ${home}: ${String(error)}`)), everyMs).unref();
}
