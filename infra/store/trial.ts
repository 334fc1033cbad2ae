/** Undoes what opening a folder store creates, for a store that is only tested. */
import { existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isStore, markerName } from './store-folder.ts';

/**
 * Runs `work`, which may open the folder as a store and probe it. Then removes everything of the store that did not
 * exist before.
 */
export async function leavingNothing<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const missing = missingFolders(folder);
  const wasStore = await isStore(folder);
  const hadProbes = existsSync(join(folder, probes));
  try {
    return await work();
  } finally {
    if (!hadProbes) await ifPossible(rmdir(join(folder, probes)));
    if (!wasStore) await ifPossible(rm(join(folder, markerName)));
    for (const made of missing) await ifPossible(rmdir(made));
  }
}

const probes = 'probe';

/** The folder and its parents that do not exist, the deepest first. */
function missingFolders(folder: string): string[] {
  return existsSync(folder) ? [] : [folder, ...missingFolders(dirname(folder))];
}

/** A folder that was never created, or that contains something by now, stays as it is. */
async function ifPossible(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && harmless.has(String(error.code)))) throw error;
  }
}

const harmless = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS']);
