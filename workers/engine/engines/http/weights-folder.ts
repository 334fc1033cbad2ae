/**
 * What petrel writes into the folder of one server's weights, and when it removes it: older weights when newer ones are
 * loaded, and all of it when this worker samples no more. What others have put there stays.
 */
import { existsSync } from 'node:fs';
import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ownLabel } from '../../../../infra/sampling-servers/sampling-api.ts';
import { inFreeTurn } from './folder-turn.ts';

/** How names begin of what is not weights that are loaded: those by their label. */
export const writing = 'writing-';
export const zeros = 'zeros-';
/** Age of what nobody writes any more. */
const leftMs = 86_400_000;

/**
 * Removes a folder that petrel has written. It may stay: NFS keeps files that another worker has open. Who has the next
 * turn tries again.
 */
export const removed = (path: string): Promise<void> => rm(path, { recursive: true, force: true }).catch(remains);

const remains = (error: unknown): void => console.error(`weights that no server needs remain: ${String(error)}`);

/** Removes older weights, and what dead processes have left. Only who has the turn may. */
export async function removeOthers(folder: string, path: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const other = join(folder, name);
    const isLeft = name.startsWith(writing) && (await isOld(other));
    if (isLeft || (name.startsWith(ownLabel) && other !== path)) await removed(other);
  }
}

/**
 * Removes all that petrel has written there, since this worker needs it no more, unless another one has its turn. A
 * server has read what it has loaded, and other workers write what they need.
 */
export async function removeWeights(folder: string): Promise<void> {
  if (existsSync(folder)) await emptied(folder).catch(remains);
}

async function emptied(folder: string): Promise<void> {
  await inFreeTurn(folder, async () => {
    await removeOthers(folder, '');
    for (const name of await readdir(folder)) if (name.startsWith(zeros)) await removed(join(folder, name));
  });
  await rmdir(folder).catch(unlessInUse);
}

/** Removes what dead workers have left of servers that nobody asks any more; `place`: the folder of their folders. */
export async function removeLeft(place: string): Promise<void> {
  for (const name of await readdir(place)) {
    const folder = join(place, name);
    // As the engine names the folders of servers.
    if (/^[0-9a-f]{16}$/.test(name) && (await isOld(folder))) await removeWeights(folder);
  }
}

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  return found !== undefined && found.mtimeMs < Date.now() - leftMs;
}

function unlessInUse(error: NodeJS.ErrnoException): void {
  if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'EBUSY'].includes(error.code ?? '')) throw error;
}
