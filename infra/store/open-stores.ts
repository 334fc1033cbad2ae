/** The stores that a process has open. Whoever starts a run makes its store; for those who serve it a folder that is gone is gone, and not made anew, empty. */
import { RetryableError } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { openStore } from './open.ts';
import { isThere } from './places.ts';

/** Opens each store once. One that could not be opened is tried again by whoever asks next. */
export function storesByUrl(): (url: string) => Promise<Store> {
  const stores = new Map<string, Promise<Store>>();
  return (url) => {
    let store = stores.get(url);
    if (store === undefined) {
      store = openIfThere(url);
      store.catch(() => stores.delete(url));
      stores.set(url, store);
    }
    return store;
  };
}

async function openIfThere(url: string): Promise<Store> {
  if (!isThere(url)) throw new RetryableError('StoreGone', `the store ${url} is gone`, { hint: 'mount its disk, or move the folder back: then it goes on' });
  return openStore(url);
}
