/**
 * The store of a new run: created if necessary, and tested. It must accept and list objects, and let only one writer
 * create an object.
 */
import { fileURLToPath } from 'node:url';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { storeUrl } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { leavingNothing } from '../../infra/store/trial.ts';
import { openStoreForNew } from './stores-away.ts';

/** Throws InvalidInputError, or TerminalError `StoreGone` or `StoreDoesNotFence`. */
export async function storeForNewRun(where: string | null, home: string): Promise<Store> {
  const store = await openStoreForNew(where, home);
  await ensureFences(home, store);
  await store.children(keys.runs);
  return store;
}

/** Does the same checks as `storeForNewRun`, but leaves nothing in the store. Returns where the store is. */
export async function tryStoreForNewRun(where: string | null, home: string): Promise<{ readonly url: string }> {
  const url = storeUrl(where ?? defaultStore(home));
  const open = async () => ({ url: (await storeForNewRun(where, home)).url });
  return url.startsWith('file:') ? leavingNothing(fileURLToPath(url), open) : open();
}
