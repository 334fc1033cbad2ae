/** The places of set-up: the checkout, PETREL_HOME, and the stamps that say what is done. */

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const checkoutRoot = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** PETREL_HOME or ~/.petrel; created if missing, and accessible to its user only. */
export function petrelHome() {
  const home = resolve(process.env.PETREL_HOME || join(homedir(), '.petrel'));
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700);
  return home;
}

/** SHA-256 over names and contents, in name order: moving or touching files changes nothing, editing does. */
export function contentHash(root, files, ...more) {
  const hash = createHash('sha256');
  for (const file of [...files].sort())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  for (const text of more) hash.update(`${text}\0`);
  return hash.digest('hex');
}

/** SHA-256 of a file, in hex. */
export const sha256 = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** False in a package that npm installed: it has no sources, was built before, and may be read-only. */
export const isCheckout = (root) => existsSync(join(root, 'tsconfig.json'));

/** Relative paths of the files below `folders` that `wanted` accepts. Links and dependencies are not followed. */
export function filesBelow(root, folders, wanted) {
  const found = [];
  const visit = (folder) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== 'node_modules') visit(path);
      else if (entry.isFile() && wanted(path)) found.push(path);
    }
  };
  for (const folder of folders) if (existsSync(join(root, folder))) visit(folder);
  return found;
}

/** Replaces a file in one step, so that a reader or a crash never meets half of it. */
export function writeAtomically(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}

/** A stamp holds the key of the last success of a step; it is written last. */
export class Stamp {
  #path;

  constructor(path) {
    this.#path = path;
  }

  holds(key) {
    return existsSync(this.#path) && readFileSync(this.#path, 'utf8') === key;
  }

  write(key) {
    writeAtomically(this.#path, key);
  }
}

/** Stamps of the checkout live in build/, which git ignores. */
export const checkoutStamp = (root, name) => new Stamp(join(root, 'build', 'stamps', name));
