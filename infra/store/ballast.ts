/**
 * Room that is taken beforehand and given back when the disk is full, so that there is enough for the small records which
 * say so. Taken again when there is space.
 */
import { rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freeBytes, freeSpaceFloor, isFull } from './free-space.ts';

/** Hidden from the listings of a store. */
export const ballastName = '.petrel-ballast';
/** Enough for hundreds of records. */
export const ballastBytes = 2 * 2 ** 20;

/** Takes the room unless it is taken, or there is none to spare. True when it is there afterwards. */
export async function keepBallast(folder: string): Promise<boolean> {
  const path = join(folder, ballastName);
  if (existsSync(path)) return true;
  if ((await freeBytes(folder)) < freeSpaceFloor() + ballastBytes) return false;
  const partial = `${path}.${process.pid}`;
  try {
    // Not zeros: a file system that compresses or leaves holes would take no room for them.
    await writeFile(
      partial,
      Buffer.alloc(ballastBytes, 'petrel keeps this room for the record that the disk is full\n'),
    );
    await rename(partial, path);
    return true;
  } catch (error) {
    await rm(partial, { force: true });
    if (isFull(error)) return false;
    throw error;
  }
}

/** Gives the room back. False when it was not there. */
export async function releaseBallast(folder: string): Promise<boolean> {
  try {
    await rm(join(folder, ballastName));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
