/**
 * A file that reserves disk space and is deleted when the disk is full, so that the small records which report the full
 * disk can be written. It is created again when there is space.
 */
import { rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freeBytes, freeSpaceFloor, isFull } from '../../log/objects/free-space.ts';

/** Hidden from the listings of a store. */
export const ballastName = '.petrel-ballast';
/** Room for hundreds of records. */
export const ballastBytes = 2 * 2 ** 20;

/** Creates the file, unless it exists or there is too little space. True when it exists afterwards. */
export async function keepBallast(folder: string): Promise<boolean> {
  const path = join(folder, ballastName);
  if (existsSync(path)) return true;
  if ((await freeBytes(folder)) < freeSpaceFloor() + ballastBytes) return false;
  const partial = `${path}.${process.pid}`;
  try {
    // Not zeros: a file system that compresses data or keeps holes would reserve no space for them.
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

/** Deletes the file. False when it did not exist. */
export async function releaseBallast(folder: string): Promise<boolean> {
  try {
    await rm(join(folder, ballastName));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
