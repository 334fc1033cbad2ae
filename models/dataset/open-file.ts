/** Opens a data file for reading, or says why it cannot be read. */
import { constants } from 'node:fs';
import { type FileHandle, open, readlink } from 'node:fs/promises';
import { InvalidInputError } from '../../core/errors.ts';
import { quoted } from '../file-kind.ts';

/**
 * Throws InvalidInputError for what is no file that can be read. Opening a named pipe would wait for somebody who
 * writes; without blocking it opens, and is then refused as what it is.
 */
export async function openFile(path: string): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(async (cause: unknown) => {
    throw cannotOpen(path, cause as NodeJS.ErrnoException, await readlink(path).catch(() => undefined));
  });
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw notAFile(path, kindOf(stats));
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function kindOf(stats: Awaited<ReturnType<FileHandle['stat']>>): string {
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a named pipe';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}

function notAFile(path: string, found: string): InvalidInputError {
  const hint =
    found === 'a folder'
      ? 'name its files in a list: data.train_files: [a.jsonl, b.jsonl]'
      : found === 'a named pipe'
        ? `write its rows into a file first: cat ${quoted(path)} > rows.jsonl`
        : 'write its rows into a file first';
  return new InvalidInputError(`${path}: expected a file, found ${found}; rows are read more than once`, {
    where: path,
    hint,
  });
}

/** `target`: what the path links to, if it is a link. */
function cannotOpen(path: string, cause: NodeJS.ErrnoException, target: string | undefined): InvalidInputError {
  const about = { where: path, cause };
  switch (cause.code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new InvalidInputError(
        target === undefined
          ? `${path}: there is no such file`
          : `${path}: the link leads to ${target}, and there is no such file`,
        about,
      );
    case 'EACCES':
    case 'EPERM':
      return new InvalidInputError(`${path}: this user may not read the file`, {
        ...about,
        hint: `chmod u+r ${quoted(path)}`,
      });
    case 'ENXIO':
      return notAFile(path, 'a socket');
    case 'ELOOP':
      return new InvalidInputError(`${path}: the link leads back to itself`, about);
    default:
      return new InvalidInputError(`${path}: cannot be opened: ${cause.message}`, about);
  }
}
