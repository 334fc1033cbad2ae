/** The stores that a process has open. Whoever starts a run makes its store; for those who serve it a folder that is gone is gone, and not made anew, empty, nor is an empty one the store. */
import type { Store } from '../../core/ports.ts';
import { storeGone } from './folder-root.ts';
import { openStore } from './open.ts';
import { isInUse } from './places.ts';

/** Opens each store once. One that could not be opened is tried again by whoever asks next. */
export function storesByUrl(): (url: string) => Promise<Store> {
  const stores = new Map<string, Promise<Store>>();
  return (url) => {
    let store = stores.get(url);
    if (store === undefined) {
      store = openIfInUse(url);
      store.catch(() => stores.delete(url));
      stores.set(url, store);
    }
    return store;
  };
}

async function openIfInUse(url: string): Promise<Store> {
  const store = await openStore(url, 'refuse');
  if (!isInUse(url)) throw storeGone(url);
  return store;
}
