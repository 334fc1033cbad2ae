/**
 * The stores that a process of the stack has open. Such a process never creates a store; the command that starts a run
 * does. A missing or empty folder is not the store: perhaps its disk is not mounted.
 */
import { errorToJson, PetrelError, TerminalError, UnfitError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { storeGone } from '../../core/store-gone.ts';
import { openStore } from './open.ts';
import { isInUse } from './places.ts';

/**
 * Opens each store once; a store that could not be opened is tried again by the next call. `isKnown`: a run's scorer is
 * code in its store, so a store that the user of the stack never named is refused with TerminalError `UnknownStore`.
 * Throws UnfitError when this process cannot use the store (no credentials, no permission, no such bucket),
 * RetryableError when the store does not answer.
 */
export function storesByUrl(isKnown: (url: string) => boolean | Promise<boolean>): (url: string) => Promise<Store> {
  const stores = new Map<string, Promise<Store>>();
  return (url) => {
    let store = stores.get(url);
    if (store === undefined) {
      store = openKnown(url, isKnown);
      store.catch(() => stores.delete(url));
      stores.set(url, store);
    }
    return store;
  };
}

/**
 * True in threads, because the main thread of the process has opened and checked the store of a job before it passes
 * the job on.
 */
export const checkedByMainThread = (): boolean => true;

async function openKnown(url: string, isKnown: Parameters<typeof storesByUrl>[0]): Promise<Store> {
  if (!(await isKnown(url)))
    throw new TerminalError(
      'UnknownStore',
      `expected a store of this stack, got ${url}, which the stack does not know`,
      {
        hint: 'petrel run, resume --store and schedule add make a store known',
      },
    );
  const store = await openServing(url).catch((error: unknown) => {
    throw isPassing(error) ? error : unusable(url, error);
  });
  if (!isInUse(url)) throw storeGone(url);
  return store;
}

async function openServing(url: string): Promise<Store> {
  if (!url.startsWith('s3://')) return openStore(url, 'refuse');
  return (await import('./s3/store.ts')).openS3Store(url, undefined, true);
}

/** Errors that may pass, or that already say that this process is at fault, stay as they are. */
function isPassing(error: unknown): boolean {
  return error instanceof PetrelError && error.kind !== 'terminal';
}

function unusable(url: string, cause: unknown): UnfitError {
  const { code, message, hint } = errorToJson(cause);
  const text = message.includes(url) ? message : `${url}: ${message}`;
  return new UnfitError(code === 'Internal' ? 'StoreUnusable' : code, text, {
    where: url,
    ...(hint === undefined ? {} : { hint }),
    cause,
  });
}
