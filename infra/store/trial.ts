/** Undoing what opening a folder store makes, for a store that is only tried. */
import { existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isStore, markerName } from './store-folder.ts';

/** Does `work`, which may open the folder as a store and probe it; then removes whatever of the store was not there before. */
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

/** The folder and those above it that are not there, the deepest first. */
function missingFolders(folder: string): string[] {
  return existsSync(folder) ? [] : [folder, ...missingFolders(dirname(folder))];
}

/** What was never made, or a folder that holds something by now, stays as it is. */
async function ifPossible(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && harmless.has(String(error.code)))) throw error;
  }
}

const harmless = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS']);
