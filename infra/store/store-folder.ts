/**
 * Which folders are petrel stores, and which may become one. petrel removes old objects from its stores, so it never
 * creates a store in a folder with other files.
 */
import { open, readdir, realpath } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { runIdPattern } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { isInputFolder } from '../../core/records/own-keys.ts';
import { ballastName } from './ballast.ts';

/** Marker file of a store, hidden from listings. Stores from the first weeks have none. */
export const markerName = '.petrel-store';

const markerText = `${JSON.stringify({ format: 1, what: 'a petrel store: see docs/do/store.md' })}\n`;

/** Names that a folder may contain and still count as empty: the file system or petrel creates them. */
const noContent: ReadonlySet<string> = new Set(['lost+found', ballastName, 'probe']);

/**
 * Makes an existing folder a store, unless it is one. Throws InvalidInputError when it contains other files, for `/`
 * and for a home folder.
 */
export async function becomeStore(folder: string): Promise<void> {
  if (await isStore(folder)) return;
  const real = await realpath(folder);
  if (real === '/') throw unfit(folder, 'it is the root folder');
  if ((await homes()).includes(real)) throw unfit(folder, 'it is a home folder');
  const names = (await readdir(folder)).filter((name) => !noContent.has(name)).sort();
  if (names.length === 0) return mark(folder);
  if (await isStore(folder)) return; // another process has made it one since the first look
  const shown = names.slice(0, 3).join(', ') + (names.length > 3 ? ', …' : '');
  throw unfit(folder, `it holds other files (${shown})`);
}

/** Another process may write the marker at the same time. */
async function mark(folder: string): Promise<void> {
  try {
    const file = await open(join(folder, markerName), 'wx', 0o644);
    try {
      await file.writeFile(markerText);
      await file.datasync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** A folder is a store when it has the marker, or any object that only petrel writes. */
export async function isStore(folder: string): Promise<boolean> {
  if ((await namesIn(folder)).includes(markerName)) return true;
  const runs = (await namesIn(join(folder, keys.runs))).filter((name) => runIdPattern.test(name));
  for (const runId of runs) if (await isThere(folder, keys.run(runId))) return true;
  for (const name of await namesIn(join(folder, keys.schedules)))
    if (await isThere(folder, keys.schedule(name, 1))) return true;
  for (const [kind, file] of inputFiles)
    for (const name of await namesIn(join(folder, kind)))
      if (isInputFolder(`${kind}${name}/`) && (await isThere(folder, `${kind}${name}/${file}`))) return true;
  return false;
}

const inputFiles = [
  ['models/', 'manifest.json'],
  ['datasets/', 'tokens.safetensors'],
] as const;

async function isThere(folder: string, key: string): Promise<boolean> {
  const at = key.lastIndexOf('/');
  return (await namesIn(join(folder, key.slice(0, at)))).includes(key.slice(at + 1));
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return [];
    throw error;
  }
}

/** Home folders of this user: $HOME may differ from the system's entry. */
async function homes(): Promise<readonly string[]> {
  const named = [homedir, () => userInfo().homedir].flatMap(unlessUnknown);
  return Promise.all(named.map((home) => realpath(home).catch(() => home)));
}

/**
 * Returns no folder for a user id that the system does not know; such a user has no home, and both calls throw for him.
 */
function unlessUnknown(home: () => string): readonly string[] {
  try {
    return [home()];
  } catch {
    return [];
  }
}

function unfit(folder: string, why: string): InvalidInputError {
  return new InvalidInputError(
    `store: expected a petrel store, or a folder that is new or empty, found that ${folder} is neither: ${why}`,
    { where: folder, hint: `store: ${join(folder, 'petrel-store')}` },
  );
}
