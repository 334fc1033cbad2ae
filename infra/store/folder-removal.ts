/**
 * Removal in a folder store. A user may keep other files and symbolic links in the folder, so only regular files are
 * removed, and nothing behind a link.
 */
import { lstat, readdir, realpath, rm, rmdir } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import { isOwnFolder, topFolders } from '../../core/records/own-keys.ts';

/** A temporary file of a writer; it is renamed when it is complete. */
const temporaryName = /^\.tmp-[0-9a-f]{16}$/;

/**
 * Removes the file of a key, if it exists. Returns the folders whose entries changed. Throws TerminalError
 * `OutsideStore`.
 */
export async function removeFile(root: string, key: string): Promise<readonly string[]> {
  const folder = await insideOf(root, join(key, '..'));
  if (folder === undefined) return [];
  const path = join(root, key);
  if ((await lstat(path).catch(absent))?.isFile() === true) await rm(path, { force: true });
  return [folder];
}

/**
 * Removes the files below a folder whose keys are selected, then the empty folders and the temporary files of dead
 * writers. Returns the folders whose entries changed. Throws TerminalError `OutsideStore`.
 */
export async function removeBelow(
  root: string,
  prefix: string,
  wanted: (key: string) => boolean,
): Promise<readonly string[]> {
  const folder = await insideOf(root, prefix);
  if (folder === undefined) return [];
  return [dirname(folder), ...(await clear(folder, (path) => wanted(relative(root, path)) || isLeftover(root, path)))];
}

async function clear(folder: string, wanted: (path: string) => boolean): Promise<readonly string[]> {
  const cleared = [folder];
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(absent)) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) cleared.push(...(await clear(path, wanted)));
    else if (entry.isFile() && wanted(path)) await rm(path, { force: true });
  }
  await rmdir(folder).catch(notEmpty);
  return cleared;
}

/** Removes petrel's temporary files that are older than `before`. Returns how many. */
export async function removeLeftovers(root: string, before: Date): Promise<number> {
  let removed = 0;
  for (const top of topFolders) {
    const folder = await insideOf(root, top).catch(behindLink);
    if (folder === undefined) continue;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || !isLeftover(root, path)) continue;
      const found = await lstat(path).catch(absent);
      if (found === undefined || found.mtime >= before) continue;
      await rm(path, { force: true });
      removed += 1;
    }
  }
  return removed;
}

function isLeftover(root: string, path: string): boolean {
  const key = relative(root, path);
  const name = key.slice(key.lastIndexOf('/') + 1);
  return temporaryName.test(name) && isOwnFolder(key.slice(0, -name.length));
}

/** The path of a folder of the store; undefined when it does not exist. */
async function insideOf(root: string, folder: string): Promise<string | undefined> {
  const path = resolve(root, folder);
  const [real, realRoot] = [await realpath(path).catch(absent), await realpath(root).catch(absent)];
  if (real === undefined || realRoot === undefined) return undefined;
  if (real === resolve(realRoot, folder)) return path;
  throw new TerminalError('OutsideStore', `${path}: expected a folder of the store, found a symbolic link to ${real}`, {
    where: path,
    hint: `Nothing behind the link was removed. To let petrel remove files there, replace the link by ${real} itself, or mount its disk there`,
  });
}

/** A pass over the whole store skips what is behind a link, without an error. */
function behindLink(error: unknown): undefined {
  if (error instanceof TerminalError && error.code === 'OutsideStore') return undefined;
  throw error;
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

function absent(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
  throw error;
}

function notEmpty(error: unknown): void {
  if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') absent(error);
}
