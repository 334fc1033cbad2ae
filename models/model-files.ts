/** The files of a model's folder are files: no folder, no pipe, no link to nothing. */
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';

const modelFile = /^(?:.*\.safetensors|.*\.json|.*\.jinja)$/;

/**
 * Throws InvalidInputError for an entry with the name of a model's file that cannot be read as one. Reading a named
 * pipe would wait for ever, and a copied cache often keeps links whose blobs were left behind.
 */
export async function assertModelFiles(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []); // an absent folder is named by who reads its files
  for (const name of names.filter((one) => modelFile.test(one)).toSorted()) await assertFile(join(folder, name));
}

async function assertFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) {
    if (!(await lstat(path)).isSymbolicLink()) return;
    throw new InvalidInputError(`${path}: a link to ${await readlink(path)}, which cannot be read`, {
      where: path,
      hint: 'copy the folder again with what its links name: cp -rL FROM TO',
    });
  }
  if (found.isFile() || (found.isDirectory() && !path.endsWith('.safetensors') && !isReadByName(path))) return;
  const kind = found.isDirectory() ? 'a folder' : found.isFIFO() ? 'a named pipe' : 'no ordinary file';
  throw new InvalidInputError(`${path}: expected a file, found ${kind}`, { where: path, hint: 'get the model again' });
}

/** A folder with another name, such as `notes.json`, disturbs nobody. */
const isReadByName = (path: string): boolean =>
  /\/(?:config|generation_config|tokenizer|tokenizer_config|model\.safetensors\.index|chat_template)\.json$/.test(path);
