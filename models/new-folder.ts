/** Creates a folder that appears under its name only when it is complete, and never replaces existing files. */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';

/**
 * `write` fills a temporary folder next to `folder`, which is then renamed to `folder`. An empty folder may be
 * replaced. Throws InvalidInputError for anything else at that path, also if it appeared during the writing.
 */
export async function writeNewFolder(folder: string, write: (partial: string) => Promise<void>): Promise<void> {
  const place = await freePlace(folder);
  await mkdir(dirname(place), { recursive: true });
  const partial = `${place}.partial-${randomBytes(8).toString('hex')}`;
  await mkdir(partial); // fails if it exists, so everything in it was written here
  try {
    await write(partial);
    await publish(partial, place);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** The path without symbolic links at its end. */
async function freePlace(folder: string): Promise<string> {
  const place = resolve(folder);
  const found = await lstat(place).catch(undefinedIfAbsent);
  if (found === undefined) return place;
  try {
    if ((await readdir(place)).length === 0) return await realpath(place);
  } catch (error) {
    throw occupied(place, `found ${found.isSymbolicLink() ? 'a symbolic link to no folder' : 'a file'}`, error);
  }
  throw occupied(place, 'the folder exists and is not empty');
}

/** rename(2) replaces only an empty folder. */
async function publish(partial: string, place: string): Promise<void> {
  try {
    await rename(partial, place);
  } catch (error) {
    if (!occupiedCodes.has(codeOf(error))) throw error;
    throw occupied(place, 'something was created there while the files were written', error);
  }
}

const occupiedCodes: ReadonlySet<unknown> = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EBUSY']);

function occupied(place: string, found: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(`${place}: expected a new or an empty folder, but ${found}`, {
    where: place,
    hint: 'Choose another folder with --out. Nothing there was changed.',
    cause,
  });
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

function undefinedIfAbsent(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT') return undefined;
  throw error;
}
