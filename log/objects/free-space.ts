/**
 * Free space on the disks that a run needs. Below a floor no new work is admitted, so that running work can finish and
 * the pause can be recorded.
 */
import { statfs } from 'node:fs/promises';
import { InvalidInputError, PauseError, UnfitError } from '../../core/errors.ts';

/** MiB that must be free before new work starts. */
export const floorVariable = 'PETREL_FREE_SPACE_MB';
const defaultFloorMb = 256;

const mib = 2 ** 20;

/** Bytes. Throws InvalidInputError for a floor that is not a number. */
export function freeSpaceFloor(env: NodeJS.ProcessEnv = process.env): number {
  const text = env[floorVariable];
  if (text === undefined || text === '') return defaultFloorMb * mib;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0) return value * mib;
  throw new InvalidInputError(`${floorVariable}: expected a number of MiB, found ${text}`);
}

/** Bytes that an ordinary user can still write on the file system of this path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** The error when `needed` bytes do not fit; `what`: the store, petrel's home. */
export async function diskFull(what: string, path: string, needed: number, cause?: unknown): Promise<PauseError> {
  const free = await freeBytes(path);
  return new PauseError(
    'DiskFull',
    `${what} ${path} is full: ${showMib(free)} MiB are free, ${showMib(needed)} MiB are needed`,
    {
      where: path,
      hint: `free some space there (petrel rm deletes old runs), then petrel resume; ${floorVariable} sets how much must be free`,
      ...(cause === undefined ? {} : { cause }),
    },
  );
}

/** Throws PauseError `DiskFull` when less than the floor is free. */
export async function admitWork(what: string, path: string, floor = freeSpaceFloor()): Promise<void> {
  const full = await fullPlace(what, path, floor);
  if (full !== undefined) throw full;
}

/** Throws PauseError `DiskFull` when these bytes and the floor do not fit. */
export async function checkRoom(what: string, path: string, bytes: number): Promise<void> {
  const needed = bytes + freeSpaceFloor();
  if ((await freeBytes(path)) < needed) throw await diskFull(what, path, needed);
}

/** The message when less than the floor is free. */
export async function fullPlace(what: string, path: string, floor = freeSpaceFloor()): Promise<PauseError | undefined> {
  return (await freeBytes(path)) < floor ? await diskFull(what, path, floor) : undefined;
}

/**
 * Does what `admitWork` does, for a folder of this process only, because another process may have space. Throws
 * UnfitError `DiskFull`.
 */
export async function admitWorkHere(what: string, path: string): Promise<void> {
  const full = await fullPlace(what, path);
  if (full !== undefined) throw unfit(full);
}

/** The result of `write`. Throws UnfitError `DiskFull` when the disk of this process's folder is full. */
export async function whileRoomHere<T>(what: string, path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isFull(error)) throw error;
    throw unfit(await diskFull(what, path, freeSpaceFloor(), error));
  }
}

function unfit({ code, message, where, cause }: PauseError): UnfitError {
  return new UnfitError(code, message, {
    ...(where === undefined ? {} : { where }),
    hint: `free some space there; the worker checks again by itself. ${floorVariable} sets how much must be free`,
    cause,
  });
}

/** Is the disk full, or the user's quota? */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

function showMib(bytes: number): string {
  return bytes < mib ? (bytes / mib).toFixed(2) : Math.round(bytes / mib).toString();
}
