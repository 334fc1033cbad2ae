/** Files at the path of --out. */
import { randomBytes } from 'node:crypto';
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';

/**
 * The file appears when it is complete. One that holds the same text already is left as it is. Throws InvalidInputError
 * when anything else is in its place. Returns its size in bytes.
 */
export function writeNewFile(file: string, text: string): number {
  const partial = `${file}.partial-${randomBytes(8).toString('hex')}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(partial, text, { flag: 'wx' });
  try {
    linkSync(partial, file); // a rename would replace a file of the user's
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    if (!holds(file, text)) throw occupied(file);
  } finally {
    rmSync(partial);
  }
  return Buffer.byteLength(text);
}

function holds(file: string, text: string): boolean {
  return lstatSync(file).isFile() && readFileSync(file, 'utf8') === text;
}

function occupied(file: string): InvalidInputError {
  return new InvalidInputError(`${file}: expected a new file, but something else is there`, {
    where: file,
    hint: 'Choose another file with --out. Nothing there was changed.',
  });
}
