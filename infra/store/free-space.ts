/**
 * Room on the disks that a run needs. Below a floor no new work is admitted: what is under way can then be finished, and
 * the pause be written down.
 */
import { statfs } from 'node:fs/promises';
import { InvalidInputError, PauseError, UnfitError } from '../../core/errors.ts';

/** MiB that must be free before new work begins. */
export const floorVariable = 'PETREL_FREE_SPACE_MB';
const defaultFloorMb = 256;

const mib = 2 ** 20;

/** Bytes. Throws InvalidInputError for a floor that is no number. */
export function freeSpaceFloor(env: NodeJS.ProcessEnv = process.env): number {
  const text = env[floorVariable];
  if (text === undefined || text === '') return defaultFloorMb * mib;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0) return value * mib;
  throw new InvalidInputError(`${floorVariable}: expected a number of MiB, found ${text}`);
}

/** Bytes that an ordinary user may still write where this path lies. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** No room for `needed` bytes; `what`: the store, petrel's home. */
export async function diskFull(what: string, path: string, needed: number, cause?: unknown): Promise<PauseError> {
  const free = await freeBytes(path);
  return new PauseError(
    'DiskFull',
    `${what} ${path} is full: ${showMib(free)} MiB are free, ${showMib(needed)} MiB are needed`,
    {
      where: path,
      hint: `Make room there (petrel rm deletes old runs), then petrel resume; ${floorVariable} sets how much must be free`,
      ...(cause === undefined ? {} : { cause }),
    },
  );
}

/** Throws PauseError `DiskFull` when less than the floor is free. */
export async function admitWork(what: string, path: string, floor = freeSpaceFloor()): Promise<void> {
  const full = await fullPlace(what, path, floor);
  if (full !== undefined) throw full;
}

/** Throws PauseError `DiskFull` when these bytes do not fit beside the floor. */
export async function checkRoom(what: string, path: string, bytes: number): Promise<void> {
  const needed = bytes + freeSpaceFloor();
  if ((await freeBytes(path)) < needed) throw await diskFull(what, path, needed);
}

/** What to say when less than the floor is free. */
export async function fullPlace(what: string, path: string, floor = freeSpaceFloor()): Promise<PauseError | undefined> {
  return (await freeBytes(path)) < floor ? await diskFull(what, path, floor) : undefined;
}

/** As `admitWork`, for a folder of this process only: another process may have room. Throws UnfitError `DiskFull`. */
export async function admitWorkHere(what: string, path: string): Promise<void> {
  const full = await fullPlace(what, path);
  if (full !== undefined) throw unfit(full);
}

/** The outcome of `write`. Throws UnfitError `DiskFull` when the folder of this process has no room for it. */
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
    hint: `Make room there; the worker looks again by itself. ${floorVariable} sets how much must be free`,
    cause,
  });
}

/** The disk, or the user's share of it, is used up. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

function showMib(bytes: number): string {
  return bytes < mib ? (bytes / mib).toFixed(2) : Math.round(bytes / mib).toString();
}
