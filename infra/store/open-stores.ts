/** The stores that a process has open. */
import type { Store } from '../../core/ports.ts';
import { openStore } from './open.ts';

/** Opens each store once. One that could not be opened is tried again by whoever asks next. */
export function storesByUrl(): (url: string) => Promise<Store> {
  const stores = new Map<string, Promise<Store>>();
  return (url) => {
    let store = stores.get(url);
    if (store === undefined) {
      store = openStore(url);
      store.catch(() => stores.delete(url));
      stores.set(url, store);
    }
    return store;
  };
}
